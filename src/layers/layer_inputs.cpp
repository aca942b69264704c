#include "layers/layer_inputs.h"

#include <cmath>
#include <numbers>

namespace doppler::layers {

Value layer_inputs(Builder& b, Value x) {
  Graph& g = b.graph;
  const formats::LayerInputConfig& c = b.config.layer_input;
  const uint32_t hidden = g.info(x).columns, all = b.config.n_layers * c.dim;
  // The table's rows times sqrt(P), the projection's outputs times 1 / sqrt(H), which a norm with eps * H takes care
  // of.
  const Value table = g.embed(g.matrix(TensorId::kLayerTable, 0, c.vocab_size, all),
                              std::sqrt(static_cast<float>(c.dim)));  // [R, L P]
  const Value made = b.linear(x, TensorId::kLayerTableProj, 0, all);  // [R, L P]
  const Value normed = g.head_norm(made, g.vector(TensorId::kLayerTableNorm, 0, c.dim),
                                   b.config.norm_eps * static_cast<float>(hidden));    // [R, L P]
  return g.scale(g.add(normed, table), {.factor = 1 / std::numbers::sqrt2_v<float>});  // [R, L P]
}

Value layer_input_branch(Builder& b, Value x, Value inputs, uint32_t layer) {
  Graph& g = b.graph;
  const uint32_t hidden = g.info(x).columns, dim = b.config.layer_input.dim;
  const Value gate = b.linear(x, TensorId::kLayerInputGate, layer, dim);  // [R, P]
  const Value own = g.slice(inputs, layer * dim, dim);                    // [R, P]
  const Value y = g.multiply(gate, own, b.config.activation);             // [R, P]
  return b.norm(b.linear(y, TensorId::kLayerInputProj, layer, hidden), TensorId::kLayerInputNorm, layer);
}

}  // namespace doppler::layers
