// A model's numbers as GGUF metadata: the other way of config_sources.h, by the same rows. Shared by synth/ (made-up
// weights) and convert/. Key and tensor names: llama.cpp's, github.com/ggml-org/ggml docs/gguf.md.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/architectures/config.h"
#include "formats/gguf/gguf_writer.h"

namespace doppler::formats {

inline constexpr uint32_t kQuantisationVersion = 2;  // of the block layouts, as llama.cpp writes it

// The content of the tensor "rope_freqs.weight": what each frequency is divided by (rotary_dim / 2 values). Empty: the
// model's scaling needs none.
std::vector<float> rope_divisors(const ModelConfig& config);

// general.architecture, file type and the architecture's own keys; the caller adds names, tokenizer and tensors.
// Error: a rope scaling that GGUF has no key for.
Result<void> add_config_metadata(GgufHeader& header, const ModelConfig& config, uint32_t file_type);

// Reads `header`, with its tensors declared, as a GGUF file is read. Error: what comes out has not the numbers of
// `config`, so that something of the model has no place in GGUF; the sentence says what.
Result<void> check_config_kept(const ModelConfig& config, GgufHeader header);

}  // namespace doppler::formats
