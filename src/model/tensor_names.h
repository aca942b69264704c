// What each tensor is called in a GGUF and in a Hugging Face checkpoint: one table, so that a family asks by TensorId.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/tensor_id.h"
#include "model/config.h"

namespace doppler::model {

// With the suffix ".weight" or ".bias". `layer` is ignored for weights outside the layers.
std::string tensor_name(const ModelConfig& config, TensorId id, uint32_t layer,
                        const char* suffix = ".weight");

// Where a file has the matrices that read the same vector as one tensor (doppler convert --fuse-qkv, --fuse-gate-up):
// "blk.3.attn_k" is in "blk.3.attn_qkv", behind the rows of attn_q. Empty: nothing is known to hold `name`.
std::string fused_tensor_name(const std::string& name);

// Which layer a tensor of either kind of file belongs to: 3 of "blk.3.attn_q.weight" or "model.layers.3.mlp.up_proj.weight".
std::optional<uint32_t> layer_of_tensor(const std::string& name);

}  // namespace doppler::model
