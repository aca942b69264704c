// DeepSeek V2 and V3 (DeepSeek-AI 2024) and Mistral 4 (Mistral AI 2026): Llama's block with multi-head latent
// attention, and a mixture of experts after the first layers. R rows, H hidden.
#include "families/family.h"
#include "layers/latent_attention.h"

namespace doppler::families {
namespace {

Value deepseek_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  Value h = b.norm(x, TensorId::kAttentionNorm, i);  // [R, H]
  x = g.add(x, layers::latent_attention(b, h, i));   // [R, H]
  h = b.norm(x, TensorId::kFfnNorm, i);              // [R, H]
  return g.add(x, layers::feed_forward(b, h, i));    // [R, H]
}

}  // namespace

void build_deepseek(Builder& b) { layers::decoder(b, /*embedding_scale=*/1.0f, deepseek_block); }

}  // namespace doppler::families
