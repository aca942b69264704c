// graph.h: the operations of layers with a recurrent state.
#include "base/text.h"
#include "graph/graph.h"

namespace doppler::graph {

Value Graph::causal_conv(Value x, Vector weight, Vector bias, const CausalConv& conv) {
  const uint32_t n = conv.is_gated ? columns(x) / 3 : columns(x);
  const WeightInfo& w = info(weight);
  check(w.shape == std::vector<uint32_t>{n, conv.kernel} && (!conv.is_gated || columns(x) == 3 * n) &&
            (!bias.valid() || info(bias).shape == std::vector<uint32_t>{n}),
        format_text("%s, a convolution of %u channels over %u positions, does not fit %u columns.",
                    w.label().c_str(), w.shape[0], conv.kernel, columns(x)));
  std::vector<Vector> vectors = {weight};
  if (bias.valid()) vectors.push_back(bias);
  return add_one({.operation = conv,
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = std::move(vectors),
                  .op_label = w.label()},
                 n);
}

Value Graph::add_scan(Value x, std::vector<Value> gates, std::vector<Vector> vectors, Operation operation,
                      uint32_t layer, uint32_t n_heads, uint32_t n_key_heads, uint32_t key_dim,
                      uint32_t value_dim) {
  const uint32_t values = n_heads * value_dim;
  const char* const name = op_name(static_cast<OpKind>(operation.index()));
  check(n_key_heads != 0 && n_heads % n_key_heads == 0 && columns(x) == 2 * n_key_heads * key_dim + values,
        format_text("A %s of %u heads of %u on %u of %u does not fit %u columns.", name, n_heads, value_dim,
                    n_key_heads, key_dim, columns(x)));
  for (const Value gate : gates) {
    check(columns(gate) == n_heads,
          format_text("A %s of %u heads has gates of %u columns.", name, n_heads, columns(gate)));
  }
  for (const Vector vector : vectors) {
    check(info(vector).shape[0] == n_heads,
          format_text("%s has %u values for %u heads.", info(vector).label().c_str(), info(vector).shape[0],
                      n_heads));
  }
  gates.insert(gates.begin(), x);
  return add_one({.operation = std::move(operation),
                  .inputs = std::move(gates),
                  .outputs = {},
                  .matrices = {},
                  .vectors = std::move(vectors),
                  .op_label = format_text("blk.%u.%s", layer, name)},
                 values);
}

Value Graph::gated_delta(Value x, Value a, Value b, Vector decay, Vector time_bias, const GatedDelta& d) {
  return add_scan(x, {a, b}, {decay, time_bias}, d, d.layer, d.n_heads, d.n_key_heads, d.key_dim,
                  d.value_dim);
}

Value Graph::mamba2(Value x, Value dt, Vector decay, Vector time_bias, Vector skip, const Mamba2& m) {
  return add_scan(x, {dt}, {decay, time_bias, skip}, m, m.layer, m.n_heads, m.n_key_heads, m.key_dim,
                  m.value_dim);
}

Value Graph::gated_norm(Value x, Value gate, Vector weight, const GatedNorm& norm) {
  const WeightInfo& w = info(weight);
  check(norm.group != 0 && columns(x) % norm.group == 0 && columns(gate) == columns(x) &&
            (w.shape[0] == norm.group || w.shape[0] == columns(x)),
        format_text("%s of %u values does not norm %u columns in groups of %u, gated by %u.",
                    w.label().c_str(), w.shape[0], columns(x), norm.group, columns(gate)));
  return add_one({.operation = norm,
                  .inputs = {x, gate},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {weight},
                  .op_label = w.label()},
                 columns(x));
}

Value Graph::output_gate(Value x, Value gate) {
  check(columns(x) == columns(gate), format_text("A gate of %u columns for %u.", columns(gate), columns(x)));
  return add_one({.operation = OutputGate{},
                  .inputs = {x, gate},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = nodes_[values_[gate.index].node].op_label},
                 columns(x));
}

}  // namespace doppler::graph
