// The Llama family (Touvron et al. 2023): pre-norm RMSNorm, rotary attention with grouped heads, gated feed-forward.
// Answers for all whose difference is numbers, biases or names: Mistral and Ministral (a window, scaled queries),
// Qwen2, Phi 3, SmolLM3 (layers without rotation), Granite (scales), Seed-OSS, ERNIE 4.5. R rows, H hidden, Q and K:
// builder.h.
#include "families/family.h"

namespace doppler::families {

Value llama_block(Builder& b, Value x, uint32_t i) {
  Value h = b.norm(x, TensorId::kAttentionNorm, i);                             // [R, H]
  auto [q, k, v] = b.qkv(h, i);                                                 // [R, Q], [R, K], [R, K]
  q = b.rope(q, i);                                                             // [R, Q]
  k = b.rope(k, i);                                                             // [R, K]
  const Value y = b.attention(q, k, v, i);                                      // [R, Q]
  x = b.join(x, b.linear(y, TensorId::kAttentionOut, i, b.config.hidden_dim));  // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);                                         // [R, H]
  return b.join(x, layers::feed_forward(b, h, i));                              // [R, H]
}

void build_llama(Builder& b) { layers::decoder(b, b.config.embedding_scale, llama_block); }

}  // namespace doppler::families
