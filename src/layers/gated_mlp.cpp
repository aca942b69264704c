#include "layers/gated_mlp.h"

namespace doppler::layers {

Value gated_mlp(Builder& b, Value h, uint32_t layer) {
  Graph& g = b.graph;
  const uint32_t hidden = g.info(h).columns, ffn = formats::ffn_dim_of(b.config, layer);
  auto [gate, up] = g.linear(h, {g.matrix(TensorId::kGate, layer, ffn, hidden),
                                 g.matrix(TensorId::kUp, layer, ffn, hidden)});  // [R, F], [R, F]
  const float deviations = formats::gate_deviations_of(b.config, layer);
  if (deviations != formats::kAllGates) gate = g.sparsify(gate, deviations);  // [R, F]
  const Value y = g.gated(gate, up, b.config.activation);                     // [R, F]
  return b.linear(y, TensorId::kDown, layer, hidden);                         // [R, H]
}

}  // namespace doppler::layers
