// The text model of Gemma 3n (Gemma Team 2025). AltUp has four streams (Baykal et al. 2023): layers compute the first,
// and predict and correct the others. LAuReL's low-rank branch stands beside attention (Menghani et al. 2024). In some
// layers only the largest gates stay. Embeddings of each layer reach the other streams. R rows, H hidden, Q, K:
// builder.h.
#include <cmath>
#include <numbers>

#include "families/family.h"
#include "layers/layer_inputs.h"

namespace doppler::families {
namespace {

using Streams = Graph::Streams;

// The coefficients by which the other streams follow from this one, before tanh.
Value router(Builder& b, Value x, uint32_t i) {
  return b.linear(b.norm(x, TensorId::kAltupRouterNorm, i), TensorId::kAltupRouter, i, kAltupStreams);
}

// A layer's result for the first stream.
Value gemma3n_block(Builder& b, Value x, uint32_t i) {
  Graph& g = b.graph;
  const uint32_t hidden = b.config.hidden_dim;
  const Value h = b.norm(x, TensorId::kAttentionNorm, i);                              // [R, H]
  Value y = b.linear(gemma_attention(b, h, i), TensorId::kAttentionOut, i, hidden);    // [R, H]
  const Value attended = g.add(x, b.norm(y, TensorId::kPostAttentionNorm, i));         // [R, H]
  y = b.linear(h, TensorId::kLaurelLeft, i, b.config.laurel_rank);                     // [R, rank]
  y = b.linear(y, TensorId::kLaurelRight, i, hidden);                                  // [R, H]
  const Value laurel = g.add(h, b.norm(y, TensorId::kLaurelNorm, i));                  // [R, H]
  y = g.scale(g.add(attended, laurel), {.factor = 1 / std::numbers::sqrt2_v<float>});  // [R, H]
  const Value made = layers::gated_mlp(b, b.norm(y, TensorId::kFfnNorm, i), i);        // [R, H]
  return g.add(y, b.norm(made, TensorId::kPostFfnNorm, i));                            // [R, H]
}

}  // namespace

void build_gemma3n(Builder& b) {
  Graph& g = b.graph;
  const uint32_t hidden = b.config.hidden_dim;
  const float router_scale = 1 / static_cast<float>(hidden);
  const Value x = layers::embedding(b, std::sqrt(static_cast<float>(hidden)));  // [R, H]
  const Value inputs = layers::layer_inputs(b, x);                              // [R, L P]
  Streams streams = g.altup_streams({x, b.linear(x, TensorId::kAltupIn1, 0, hidden),
                                     b.linear(x, TensorId::kAltupIn2, 0, hidden),
                                     b.linear(x, TensorId::kAltupIn3, 0, hidden)});  // [R, H] each
  std::optional<Value> added;  // to all streams but the first
  for (uint32_t i = 0; i < b.config.n_layers; ++i) {
    const Streams predicted =
        g.altup_predict(streams, added, router(b, streams[0], i),
                        g.vectors(TensorId::kAltupPredict, i, kAltupStreams * kAltupStreams, kAltupStreams),
                        {.router_scale = router_scale});
    const Value made = gemma3n_block(b, predicted[0], i);  // [R, H]
    streams = g.altup_correct(predicted, made, router(b, made, i),
                              g.vectors(TensorId::kAltupCorrect, i, kAltupStreams, kAltupStreams),
                              {.router_scale = router_scale});
    const Value scaled = g.multiply(streams[0], g.vector(TensorId::kAltupScale, i, hidden));  // [R, H]
    added = layers::layer_input_branch(b, scaled, inputs, i);                                 // [R, H]
    g.mark_hidden(streams[0]);
  }
  const auto leave = [&](uint32_t stream, TensorId matrix) {
    const Value y = added ? g.add(streams[stream], *added) : streams[stream];  // [R, H]
    return b.linear(y, matrix, 0, hidden);                                     // [R, H]
  };
  layers::head(b, g.altup_mean({streams[0], leave(1, TensorId::kAltupOut1), leave(2, TensorId::kAltupOut2),
                                leave(3, TensorId::kAltupOut3)}));
}

}  // namespace doppler::families
