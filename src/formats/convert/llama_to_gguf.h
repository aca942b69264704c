// A Hugging Face folder of the llama architecture to one GGUF file, quantised per role: names, the row order
// of q and k, metadata, tokenizer (byte-level BPE), chat template. Memory stays bounded: weights pass in
// pieces of rows. Read next: hf_llama_config.h, hf_tokenizer.h, ../gguf/llama_metadata.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "formats/checkpoint.h"
#include "formats/sink.h"

namespace doppler::formats {

struct ConvertOptions {
  std::string mix = "q8_0";                                   // a name of quant/mix.h
  std::string name;                                           // general.name
  std::vector<std::pair<std::string, std::string>> metadata;  // further text fields, such as general.license
};

// Errors: another architecture or feature, a missing or misshapen tensor, weights that are not finite, a
// tokenizer that is no byte-level BPE with a known split pattern. Returns the bytes written.
Task<Result<uint64_t>> convert_llama_to_gguf(const Checkpoint& model, const ConvertOptions& options,
                                             ByteSink& sink);

}  // namespace doppler::formats
