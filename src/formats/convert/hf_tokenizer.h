// tokenizer.json (byte-level BPE) and its neighbours as the "tokenizer.*" fields of GGUF.
#pragma once

#include "formats/checkpoint.h"
#include "formats/gguf/gguf_writer.h"

namespace doppler::formats {

// Adds tokens, types, merges, the split pattern's name, special ids, add_bos, the chat template and the
// sampling defaults of generation_config.json. Unused ids below vocab_size get placeholder tokens.
Task<Result<>> add_hf_tokenizer(const Checkpoint& model, uint32_t vocab_size, GgufHeader& header);

}  // namespace doppler::formats
