// The plain rules of mixtures of experts: a kernel for each operation.
#include <algorithm>

#include "kernels/moe/expert_sum.h"
#include "kernels/moe/group_routes.h"
#include "kernels/moe/route.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {
namespace {

Result<kernels::Routes> routes_of(const Lowering& l, Value routes) {
  if (const auto* routed = l.form_as<Routed>(routes)) return routed->routes;
  return fail(ErrorKind::kInternal, "The experts of the rows are not routes.");
}

// Those of slots, as the host writes them.
Result<kernels::Routes> slot_routes(const Lowering& l, const kernels::Context& ctx, Value value,
                                    uint32_t slots) {
  const PagedRoutes& paged = l.io().paged;
  DP_TRY(kernels::Routes routes, routes_of(l, value));
  routes.n_experts = slots;
  routes.view = paged.slot_routes.sub(0, routes.bytes(ctx.max_rows));
  routes.groups = paged.slot_groups.sub(0, kernels::GroupSizes(routes, ctx.max_rows).bytes());
  return routes;
}

// Says whether a product with experts is the first, or the last, that reads its routes.
struct Place {
  bool is_first = true, is_last = true;
};
Place place_of(const Lowering& l, uint32_t index) {
  Place place;
  for (const uint32_t reader : l.readers(l.node(index).inputs[1])) {
    if (l.node(reader).kind() != OpKind::kExpertLinear) continue;
    place.is_first = place.is_first && reader >= index;
    place.is_last = place.is_last && reader <= index;
  }
  return place;
}

// The routes with their groups, which the first product that reads them has made.
Result<kernels::Routes> grouped_routes(Lowering& l, kernels::Context& ctx, Value value) {
  DP_TRY(kernels::Routes routes, routes_of(l, value));
  if (routes.groups.valid()) return routes;
  const kernels::GroupSizes sizes(routes, ctx.max_rows);
  // Those of every expert are made once a plan, the others once a layer.
  const bool is_every = l.node(l.graph().info(value).node).kind() == OpKind::kEveryExpert;
  routes.groups =
      l.scratch(is_every ? "every_expert.groups" : "route.groups", sizes.bytes() / sizeof(uint32_t));
  DP_CHECK(kernels::record(ctx, kernels::GroupRoutes{.routes = routes, .groups = routes.groups}));
  l.set_form(value, Routed{routes});
  return routes;
}

}  // namespace

bool is_paged(const Lowering& l, Value routes) {
  return l.io().paged.routes.valid() && l.node(l.graph().info(routes).node).kind() == OpKind::kRoute;
}

Result<Outcome> lower_route(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const auto& route = std::get<graph::Route>(node.operation);
  kernels::Route op{.score = route.score,
                    .n_groups = route.n_groups,
                    .groups_used = route.groups_used,
                    .group_score = route.group_score,
                    .norm_weights = route.norm_weights,
                    .norm_epsilon = route.norm_epsilon,
                    .weight_scale = route.weight_scale};
  const Value routes = node.outputs[0];
  DP_TRY(op.logits, l.f32_of(node.inputs[0]));
  for (size_t i = 0; i < node.vectors.size(); ++i) {
    const bool is_scales = route.scales_experts && i + 1 == node.vectors.size();
    (is_scales ? op.scales : op.bias) = l.weights().vectors[node.vectors[i].index];
  }
  op.y = {.view = {}, .n_experts = l.graph().info(node.inputs[0]).columns, .n_used = route.n_used};
  const uint64_t bytes = op.y.bytes(l.rows(routes));
  op.y.view =
      is_paged(l, routes) ? l.io().paged.routes.sub(0, bytes) : l.scratch("routes", bytes / sizeof(uint32_t));
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(routes, Routed{op.y});
  return applied();
}

Result<Outcome> lower_expert_linear(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const Value routed = node.inputs[1];
  DP_TRY(const ResolvedLinear* resolved, l.resolve(index));
  DP_TRY(const kernels::Prologue prologue, l.prologue(node.inputs[0]));
  const auto* x = std::get_if<Rows>(&prologue);
  if (!x) return fail(ErrorKind::kUnsupported, "%s does not read rows.", node.op_label.c_str());
  const Projection& projection = *resolved->projection;
  const TensorView y = l.product_buffer(index);
  kernels::Context ctx = l.context(index);
  const bool grouped = std::ranges::any_of(resolved->choices, kernels::reads_groups);
  const bool paged = is_paged(l, routed);
  const Place place = place_of(l, index);
  // Once for each set of experts that the slots hold in turn.
  if (paged && place.is_first) ctx.plan.begin_part(l.graph().info(routed).node + 1);
  DP_TRY(const kernels::Routes routes, paged     ? slot_routes(l, ctx, routed, projection.n_experts)
                                       : grouped ? grouped_routes(l, ctx, routed)
                                                 : routes_of(l, routed));
  for (size_t i = 0; i < projection.parts.size(); ++i) {
    const Projection::Part& part = projection.parts[i];
    DP_CHECK(kernels::record(
        ctx, resolved->choices[i],
        kernels::ExpertLinear{.weight = part.weight,
                              .n = part.weight.n / (part.matrices * projection.n_experts),
                              .matrices = part.matrices,
                              .x = *x,
                              .x_per_slot = l.graph().info(node.inputs[0]).columns != projection.k,
                              .routes = routes,
                              .bias = part.bias,
                              .y = y,
                              .y_stride = projection.n,
                              .y_column = part.column}));
  }
  if (paged && place.is_last) ctx.plan.begin_part(0);
  l.set_product(index, y);
  return applied();
}

Result<Outcome> lower_expert_sum(Lowering& l, uint32_t index) {
  const Node& node = l.node(index);
  const Value sum = node.outputs[0];
  kernels::ExpertSum op{.n = l.graph().info(sum).columns};
  DP_TRY(op.x, l.f32_of(node.inputs[0]));
  DP_TRY(op.routes, routes_of(l, node.inputs[1]));
  if (node.inputs.size() > 2) {
    DP_TRY(op.shared, l.f32_of(node.inputs[2]));
  }
  if (node.inputs.size() > 3) {
    DP_TRY(op.shared_gate, l.f32_of(node.inputs[3]));
  }
  op.y = l.scratch(node.op_label, uint64_t{l.rows(sum)} * op.n);
  kernels::Context ctx = l.context(index);
  DP_CHECK(kernels::record(ctx, op));
  l.set_form(sum, Rows{.f32 = op.y});
  return applied();
}

}  // namespace doppler::lowering
