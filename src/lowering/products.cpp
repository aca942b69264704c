#include "lowering/products.h"

namespace doppler::lowering {

bool Projection::has_bias() const {
  for (const Part& part : parts) {
    if (part.bias.valid()) return true;
  }
  return false;
}

Result<void> record_products(Lowering& l, uint32_t linear_node,
                             const std::function<kernels::Epilogue(const Projection::Part& part)>& epilogue) {
  DP_TRY(const ResolvedLinear* resolved, l.resolve(linear_node));
  DP_TRY(const kernels::Prologue x, l.prologue(l.node(linear_node).inputs[0]));
  kernels::Context ctx = l.context(linear_node);
  const std::vector<Projection::Part>& parts = resolved->projection->parts;
  for (size_t i = 0; i < parts.size(); ++i) {
    DP_CHECK(kernels::record(
        ctx, resolved->choices[i],
        kernels::Linear{.weight = parts[i].weight, .x = x, .bias = parts[i].bias, .y = epilogue(parts[i])}));
  }
  return {};
}

std::optional<uint32_t> norm_of(const Lowering& l, Value value) {
  std::optional<uint32_t> norm;
  for (const uint32_t reader : l.readers(value)) {
    if (l.node(reader).kind() != OpKind::kRmsNorm) continue;
    if (norm) return std::nullopt;
    norm = reader;
  }
  return norm;
}

Value other_input(const Lowering& l, uint32_t add_node, Value y) {
  const std::vector<Value>& inputs = l.node(add_node).inputs;
  return inputs[0] == y ? inputs[1] : inputs[0];
}

std::string refuse_in_place(const Lowering& l, uint32_t add_node, Value x) {
  const auto* rows = l.form_as<Rows>(x);
  if (!rows || !rows->f32.valid()) return "the residual is not there as f32 rows";
  return l.is_read_out(x, add_node) ? "" : "the residual is read again after the sum";
}

}  // namespace doppler::lowering
