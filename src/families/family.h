// What a family's file gives to the table in families.cpp.
#pragma once

#include "layers/decoder.h"
#include "layers/gated_mlp.h"
#include "layers/moe.h"

namespace doppler::families {

using graph::Graph;
using graph::Value;
using layers::Builder;

void build_apertus(Builder& b);
void build_bert(Builder& b);
void build_deepseek(Builder& b);
void build_exaone4(Builder& b);
void build_gemma(Builder& b);
void build_gemma2(Builder& b);
void build_gemma3(Builder& b);
void build_gemma3n(Builder& b);
void build_gemma4(Builder& b);
void build_glm4(Builder& b);
void build_glm4_moe(Builder& b);
void build_granite_hybrid(Builder& b);
void build_hunyuan_v1(Builder& b);
void build_lfm2(Builder& b);
void build_llama(Builder& b);
void build_minimax_m2(Builder& b);
void build_modernbert(Builder& b);
void build_nemotron_h(Builder& b);
void build_olmo2(Builder& b);
void build_qwen3(Builder& b);
void build_qwen3_5(Builder& b);

// Of families whose blocks are Llama's.
Value llama_block(Builder& b, Value x, uint32_t layer);
// Of Gemma 3n and 4, up to the output matrix: values are normalised too, and keys and values may be an earlier layer's.
Value gemma_attention(Builder& b, Value h, uint32_t layer);  // [R, Q]

}  // namespace doppler::families
