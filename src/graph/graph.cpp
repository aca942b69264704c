// graph.h: declarations, shape checks, labels.
#include "graph/graph.h"

#include <algorithm>

#include "base/text.h"

namespace doppler::graph {
namespace {

// The label of matrices that read the same value, if it is not the first one's.
struct JointLabel {
  TensorId first;
  const char* name;
};
constexpr JointLabel kJointLabels[] = {{TensorId::kQ, "attn_qkv"},
                                       {TensorId::kGate, "ffn_gate_up"},
                                       {TensorId::kExpertGate, "ffn_gate_up_exps"},
                                       {TensorId::kSharedGate, "ffn_gate_up_shexp"}};

std::string label_of_linear(const Graph& graph, std::span<const Matrix> matrices) {
  const WeightInfo& first = graph.info(matrices[0]);
  if (matrices.size() > 1) {
    for (const JointLabel& joint : kJointLabels) {
      if (joint.first == first.tensor) return format_text("blk.%u.%s", first.layer, joint.name);
    }
  }
  return first.label();
}

}  // namespace

uint32_t Graph::declare(TensorId tensor, uint32_t layer, std::vector<uint32_t> shape) {
  for (uint32_t i = 0; i < weights_.size(); ++i) {
    const WeightInfo& known = weights_[i];
    if (known.tensor != tensor || known.layer != layer) continue;
    check(known.shape == shape, known.label() + " is declared with two shapes.");
    return i;
  }
  weights_.push_back({.tensor = tensor, .layer = layer, .shape = std::move(shape)});
  return static_cast<uint32_t>(weights_.size() - 1);
}

Matrix Graph::matrix(TensorId tensor, uint32_t layer, uint32_t n, uint32_t k) {
  return {declare(tensor, layer, {n, k})};
}

Matrix Graph::expert_matrices(TensorId tensor, uint32_t layer, uint32_t n_experts, uint32_t n, uint32_t k) {
  return {declare(tensor, layer, {n_experts, n, k})};
}

Vector Graph::vector(TensorId tensor, uint32_t layer, uint32_t n) { return {declare(tensor, layer, {n})}; }

Vector Graph::vectors(TensorId tensor, uint32_t layer, uint32_t count, uint32_t n) {
  return {declare(tensor, layer, {count, n})};
}

bool Graph::check(bool fits, const std::string& sentence) {
  if (!fits && error_) error_ = fail(ErrorKind::kInternal, "%s", sentence.c_str());
  return fits && error_.has_value();
}

uint32_t Graph::columns(Value value) const {
  return value.index < values_.size() ? values_[value.index].columns : 0;
}

std::string Graph::label_of(Value value) const {
  return value.index < values_.size() ? nodes_[values_[value.index].node].op_label : "";
}

std::vector<Value> Graph::add_node(Node node, std::span<const uint32_t> columns) {
  for (const Value& input : node.inputs) {
    check(input.index < values_.size(),
          format_text("%s reads a value that nothing makes.", node.op_label.c_str()));
  }
  for (const uint32_t count : columns) {
    node.outputs.push_back({static_cast<uint32_t>(values_.size())});
    values_.push_back({.columns = count, .node = static_cast<uint32_t>(nodes_.size())});
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs;
}

Value Graph::add_one(Node node, uint32_t columns) { return add_node(std::move(node), {&columns, 1}).front(); }

Value Graph::embed(Matrix table, float scale, bool is_next) {
  return add_one({.operation = Embed{.scale = scale, .is_next = is_next},
                  .inputs = {},
                  .outputs = {},
                  .matrices = {table},
                  .vectors = {},
                  .op_label = (is_next ? "next." : "") + info(table).label()},
                 info(table).shape[1]);
}

Value Graph::rms_norm(Value x, Vector weight, float eps) {
  const WeightInfo& w = info(weight);
  check(w.shape[0] == columns(x), format_text("%s has %u values and what it norms %u columns.",
                                              w.label().c_str(), w.shape[0], columns(x)));
  return add_one({.operation = RmsNorm{.eps = eps},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {weight},
                  .op_label = w.label()},
                 columns(x));
}

Value Graph::layer_norm(Value x, Vector weight, Vector bias, float eps) {
  const std::vector<Vector> vectors = bias.valid() ? std::vector{weight, bias} : std::vector{weight};
  for (const Vector& vector : vectors) {
    const WeightInfo& w = info(vector);
    check(w.shape[0] == columns(x), format_text("%s has %u values and what it norms %u columns.",
                                                w.label().c_str(), w.shape[0], columns(x)));
  }
  return add_one({.operation = LayerNorm{.eps = eps},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = vectors,
                  .op_label = info(weight).label()},
                 columns(x));
}

Value Graph::add_positions(Value x, Vector positions, Vector types) {
  for (const Vector& table : {positions, types}) {
    const WeightInfo& w = info(table);
    check(w.shape.size() == 2 && w.shape[1] == columns(x),
          format_text("%s has no rows of %u columns.", w.label().c_str(), columns(x)));
  }
  return add_one({.operation = Positions{},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {positions, types},
                  .op_label = info(positions).label()},
                 columns(x));
}

Value Graph::activate(Value x, ActivationFn activation) {
  return add_one({.operation = Activate{.activation = activation},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = label_of(x)},
                 columns(x));
}

Value Graph::head_norm(Value x, Vector weight, float eps) {
  const WeightInfo& w = info(weight);
  check(w.shape[0] != 0 && columns(x) % w.shape[0] == 0,
        format_text("%s has %u values; %u columns are not a multiple of that.", w.label().c_str(), w.shape[0],
                    columns(x)));
  return add_one({.operation = HeadNorm{.eps = eps, .head_dim = w.shape[0]},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {weight},
                  .op_label = w.label()},
                 columns(x));
}

Value Graph::head_norm(Value x, uint32_t head_dim, float eps) {
  check(head_dim != 0 && columns(x) % head_dim == 0,
        format_text("Heads of %u do not divide %u columns.", head_dim, columns(x)));
  return add_one({.operation = HeadNorm{.eps = eps, .head_dim = head_dim},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = label_of(x)},
                 columns(x));
}

std::vector<Value> Graph::add_linear(Value x, std::span<const Matrix> matrices) {
  std::vector<uint32_t> n;
  for (const Matrix& matrix : matrices) {
    const WeightInfo& w = info(matrix);
    check(w.shape[1] == columns(x), format_text("%s has %u columns and what it multiplies %u.",
                                                w.label().c_str(), w.shape[1], columns(x)));
    n.push_back(w.shape[0]);
  }
  return add_node({.operation = Linear{},
                   .inputs = {x},
                   .outputs = {},
                   .matrices = std::vector<Matrix>(matrices.begin(), matrices.end()),
                   .vectors = {},
                   .op_label = label_of_linear(*this, matrices)},
                  n);
}

std::vector<Value> Graph::add_split_linear(Value x, Matrix matrix, std::span<const uint32_t> columns) {
  const WeightInfo& w = info(matrix);
  uint32_t rows = 0;
  for (const uint32_t count : columns) rows += count;
  check(w.shape[1] == this->columns(x) && w.shape[0] == rows,
        format_text("%s is [%u, %u]; its input has %u columns, and its outputs have %u.", w.label().c_str(),
                    w.shape[0], w.shape[1], this->columns(x), rows));
  return add_node({.operation = Linear{},
                   .inputs = {x},
                   .outputs = {},
                   .matrices = {matrix},
                   .vectors = {},
                   .op_label = w.label()},
                  columns);
}

Value Graph::linear(Value x, Matrix matrix) { return add_linear(x, {&matrix, 1}).front(); }

Value Graph::rope(Value x, const Rope& rope) {
  check(rope.head_dim != 0 && columns(x) % rope.head_dim == 0 && rope.rotary_dim % 2 == 0 &&
            rope.rotary_dim <= rope.head_dim,
        format_text("A rotation of %u of %u values does not fit %u columns.", rope.rotary_dim, rope.head_dim,
                    columns(x)));
  return add_one(
      {.operation = rope, .inputs = {x}, .outputs = {}, .matrices = {}, .vectors = {}, .op_label = "rope"},
      columns(x));
}

Value Graph::attention(Value q, Value k, Value v, const Attention& a, std::optional<Vector> sinks) {
  check(a.n_kv_heads != 0 && a.n_heads % a.n_kv_heads == 0 && columns(q) == a.n_heads * a.head_dim &&
            columns(k) == a.n_kv_heads * a.head_dim && columns(v) == columns(k),
        format_text("Attention of %u heads on %u of %u values does not fit %u, %u and %u columns.", a.n_heads,
                    a.n_kv_heads, a.head_dim, columns(q), columns(k), columns(v)));
  check(!sinks || info(*sinks).shape[0] == a.n_heads, "Not each head of attention has a sink.");
  return add_one({.operation = a,
                  .inputs = {q, k, v},
                  .outputs = {},
                  .matrices = {},
                  .vectors = sinks ? std::vector<Vector>{*sinks} : std::vector<Vector>(),
                  .op_label = format_text("blk.%u.attention", a.layer)},
                 columns(q));
}

Value Graph::attention(Value q, const Attention& a) {
  check(a.n_kv_heads != 0 && a.n_heads % a.n_kv_heads == 0 && columns(q) == a.n_heads * a.head_dim &&
            a.cache_layer < a.layer,
        format_text(
            "Attention of %u heads on %u of %u values in the cache of layer %u does not fit %u columns.",
            a.n_heads, a.n_kv_heads, a.head_dim, a.cache_layer, columns(q)));
  return add_one({.operation = a,
                  .inputs = {q},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = format_text("blk.%u.attention", a.layer)},
                 columns(q));
}

Value Graph::gated(Value gate, Value up, ActivationFn activation, float limit) {
  check(columns(gate) == columns(up),
        format_text("A gate of %u columns for %u.", columns(gate), columns(up)));
  return add_one({.operation = Gated{.activation = activation, .limit = limit},
                  .inputs = {gate, up},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = label_of(gate)},
                 columns(gate));
}

Value Graph::add(Value x, Value y) {
  check(columns(x) == columns(y), format_text("A sum of %u and %u columns.", columns(x), columns(y)));
  return add_one(
      {.operation = Add{}, .inputs = {x, y}, .outputs = {}, .matrices = {}, .vectors = {}, .op_label = "add"},
      columns(x));
}

Value Graph::route(Value logits, Route route, std::optional<Vector> bias, std::optional<Vector> scales) {
  check(route.n_used != 0 && route.n_used <= columns(logits),
        format_text("%u of %u experts are chosen.", route.n_used, columns(logits)));
  std::vector<Vector> vectors;
  for (const std::optional<Vector>& vector : {bias, scales}) {
    if (!vector) continue;
    check(info(*vector).shape[0] == columns(logits),
          format_text("%s has %u values for %u experts.", info(*vector).label().c_str(),
                      info(*vector).shape[0], columns(logits)));
    vectors.push_back(*vector);
  }
  route.scales_experts = scales.has_value();
  return add_one({.operation = route,
                  .inputs = {logits},
                  .outputs = {},
                  .matrices = {},
                  .vectors = std::move(vectors),
                  .op_label = label_of(logits)},
                 2 * route.n_used);
}

ExpertLinear Graph::experts_of(Value routes) {
  const Node* maker = routes.index < values_.size() ? &nodes_[values_[routes.index].node] : nullptr;
  if (maker && maker->kind() == OpKind::kEveryExpert) {
    const uint32_t n = std::get<EveryExpert>(maker->operation).n;
    return {.n_experts = n, .n_used = n};
  }
  if (!check(maker && maker->kind() == OpKind::kRoute, "A value that names experts is not a route.")) {
    return {};
  }
  return {.n_experts = columns(maker->inputs[0]), .n_used = std::get<Route>(maker->operation).n_used};
}

std::vector<Value> Graph::add_expert_linear(Value x, Value routes, std::span<const Matrix> matrices) {
  const ExpertLinear op = experts_of(routes);
  std::vector<uint32_t> n;
  for (const Matrix& matrix : matrices) {
    const WeightInfo& w = info(matrix);
    check(w.shape.size() == 3 && w.shape[0] == op.n_experts &&
              (w.shape[2] == columns(x) || w.shape[2] * op.n_used == columns(x)),
          format_text("%s does not multiply %u columns with each of %u experts, %u a row.", w.label().c_str(),
                      columns(x), op.n_experts, op.n_used));
    n.push_back(w.shape.size() == 3 ? op.n_used * w.shape[1] : 0);
  }
  return add_node({.operation = op,
                   .inputs = {x, routes},
                   .outputs = {},
                   .matrices = std::vector<Matrix>(matrices.begin(), matrices.end()),
                   .vectors = {},
                   .op_label = label_of_linear(*this, matrices)},
                  n);
}

Value Graph::expert_sum(Value x, Value routes, std::optional<Value> shared, std::optional<Value> gate) {
  const ExpertLinear experts = experts_of(routes);
  const uint32_t n = experts.n_used == 0 ? 0 : columns(x) / experts.n_used;
  check(n * experts.n_used == columns(x) && (!shared || columns(*shared) == n) &&
            (!gate || (shared && columns(*gate) == 1)),
        format_text("%u columns of %u experts do not add up with a shared expert of %u columns.", columns(x),
                    experts.n_used, shared ? columns(*shared) : 0));
  std::vector<Value> inputs = {x, routes};
  if (shared) inputs.push_back(*shared);
  if (gate) inputs.push_back(*gate);
  return add_one({.operation = ExpertSum{.n_experts = experts.n_experts, .n_used = experts.n_used},
                  .inputs = std::move(inputs),
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = label_of(x)},
                 n);
}

Value Graph::scale(Value x, const Scale& scale) {
  return add_one(
      {.operation = scale, .inputs = {x}, .outputs = {}, .matrices = {}, .vectors = {}, .op_label = "scale"},
      columns(x));
}

Value Graph::query_scale(Value q, const QueryScale& scale) {
  check(scale.ctx_len != 0, "A scaling of queries by position / 0.");
  return add_one({.operation = scale,
                  .inputs = {q},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = "query_scale"},
                 columns(q));
}

Value Graph::xielu(Value x, Vector numbers) {
  const WeightInfo& w = info(numbers);
  check(w.shape[0] == 4, format_text("%s has %u values, not four.", w.label().c_str(), w.shape[0]));
  return add_one({.operation = Xielu{},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {numbers},
                  .op_label = w.label()},
                 columns(x));
}

Value Graph::logits_rows(Value x) {
  return add_one({.operation = LogitsRows{},
                  .inputs = {x},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = "logits_rows"},
                 columns(x));
}

std::vector<uint32_t> Graph::readers(Value value) const {
  std::vector<uint32_t> out;
  for (uint32_t i = info(value).node + 1; i < nodes_.size(); ++i) {
    if (std::ranges::find(nodes_[i].inputs, value) != nodes_[i].inputs.end()) out.push_back(i);
  }
  return out;
}

}  // namespace doppler::graph
