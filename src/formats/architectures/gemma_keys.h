// The common parts of Gemma 3n's and Gemma 4's files: layers that read the keys and values of earlier ones, and
// embeddings of each layer.
#pragma once

#include <vector>

#include "base/json_fwd.h"
#include "formats/architectures/architecture.h"

namespace doppler::formats {

// final_logit_softcapping, num_kv_shared_layers, hidden_size_per_layer_input, vocab_size_per_layer_input; attention's
// scale of 1. Error: a layer that shares has none before it to share with.
Result<void> read_huggingface_gemma(const Json& json, ModelConfig& config);

// The same of a GGUF file, but the vocabulary; its keys for one that is written.
Result<void> read_gguf_gemma(const GgufKeys& keys, ModelConfig& config);
std::vector<GgufField> gguf_gemma_fields(const ModelConfig& config);
float gemma_attention_scale(const ModelConfig& config);

}  // namespace doppler::formats
