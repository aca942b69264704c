// The entries that a family's file gives to the table in families.cpp.
#pragma once

#include "layers/decoder.h"
#include "layers/gated_mlp.h"
#include "layers/moe.h"

namespace doppler::families {

using graph::Graph;
using graph::Value;
using layers::Builder;

// A family's page by its name in the list.
#define FAMILY(name) void build_##name(Builder& b);
#define FAMILY_LIKE(name, page)
#include "formats/architectures/family_list.h"

// A tower's pages: families.h, TowerGraphs.
void build_qwen3_vl_patches(Builder& b);
void build_qwen3_vl_tokens(Builder& b);
void build_qwen2_5_vl_patches(Builder& b);
void build_qwen2_5_vl_tokens(Builder& b);
void build_gemma3_tokens(Builder& b);
void build_clip_patches(Builder& b);
void build_internvl_patches(Builder& b);
void build_pixtral_patches(Builder& b);
void build_pixtral_tokens(Builder& b);
void build_mistral3_patches(Builder& b);
void build_mistral3_tokens(Builder& b);
void build_glm4v_patches(Builder& b);
void build_glm4v_tokens(Builder& b);
void build_gemma4_patches(Builder& b);
void build_gemma4_tokens(Builder& b);
void build_siglip_patches(Builder& b);
void build_linear_tokens(Builder& b);
void build_norm_mlp_tokens(Builder& b);

// For families whose blocks are Llama's.
Value llama_block(Builder& b, Value x, uint32_t layer);
// For Gemma 3n and 4, up to the output matrix: values are normalised too, and keys and values may be an earlier
// layer's.
Value gemma_attention(Builder& b, Value h, uint32_t layer);  // [R, Q]

}  // namespace doppler::families
