// Tensors of Hugging Face folders that hold several matrices head by head; GGUF files have these matrices apart. The
// bytes are gathered when they are read.
#pragma once

#include <memory>
#include <vector>

#include "base/json_fwd.h"
#include "formats/checkpoint.h"

namespace doppler::formats {

// By the sizes of config.json replaces "self_attn.kv_b_proj.weight" of multi-head latent attention (for each head rows
// of keys, then of values) by "self_attn.k_b_proj.weight" [heads, rank, key_dim] and "self_attn.v_b_proj.weight"
// [heads, value_dim, rank]. "linear_attn.in_proj_qkvz.weight" of gated delta nets (for each key head its query, key,
// values and gates) becomes "linear_attn.in_proj_qkv.weight" and "linear_attn.in_proj_z.weight". Models without such
// tensors stay unchanged. Errors: other shapes; types that are not plain numbers.
Result<void> split_heads(std::vector<std::unique_ptr<ByteSource>>& sources, std::vector<TensorInfo>& tensors,
                         const Json& config);

}  // namespace doppler::formats
