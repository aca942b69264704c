// The numbers of multi-head latent attention by the keys that its families share (DeepSeek-AI 2024). The cache has one
// head of kv_rank + rope_dim values a token, as llama.cpp's files say too.
#pragma once

#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "formats/architectures/architecture.h"

namespace doppler::formats {

// Keys that change the maths and that the readers below understand.
inline constexpr std::string_view kGgufLatentKeys[] = {"attention.kv_lora_rank", "attention.q_lora_rank",
                                                       "attention.temperature_scale", "expert_count"};
inline constexpr std::string_view kHuggingFaceLatentKeys[] = {
    "kv_lora_rank", "q_lora_rank", "n_routed_experts", "n_shared_experts", "first_k_dense_replace"};

// kv_lora_rank, q_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim.
Result<void> read_huggingface_latents(const Json& json, ModelConfig& config);

// The same of a GGUF file; error: one from before llama.cpp's files had keys and values apart (attn_kv_b).
Result<void> read_gguf_latents(const GgufKeys& keys, ModelConfig& config);
std::vector<GgufField> gguf_latent_fields(const ModelConfig& config);

// (nope_dim + rope_dim)^-0.5, times the square of yarn's mscale where the file gives mscale_all_dim.
float latent_attention_scale(const ModelConfig& config);

}  // namespace doppler::formats
