// Records the products of stacked weights and the norms between them: weight_loader.h.
#include <algorithm>

#include "kernels/glu/glu.h"
#include "kernels/rms_norm/rms_norm.h"
#include "model/weight_loader.h"

namespace doppler::model {
namespace {

using kernels::Activation;

bool finishes_norm(const kernels::Context& ctx, const Projection& projection, ActivationFn gate) {
  if (gate != ActivationFn::kNone && projection.parts.size() > 1) return false;
  const bool q8 = kernels::wants_q8(ctx, projection.parts.front().weight);
  return std::ranges::all_of(projection.parts, [&](const Projection::Part& part) {
    return kernels::finishes_norm(ctx, part.weight, gate) && kernels::wants_q8(ctx, part.weight) == q8;
  });
}

}  // namespace

Result<void> record(kernels::Context& ctx, const Projection& projection, const kernels::Activation& x,
                    kernels::TensorView y, bool accumulate) {
  if (projection.parts.size() == 2 && !accumulate) {
    const Projection::Part& first = projection.parts[0];
    const Projection::Part& second = projection.parts[1];
    if (!first.bias.valid() && !second.bias.valid() &&
        kernels::joins_pair(ctx, first.weight, second.weight)) {
      return kernels::record(
          ctx, kernels::LinearPair{.first = first.weight, .second = second.weight, .x = x, .y = y});
    }
  }
  for (const Projection::Part& part : projection.parts) {
    const kernels::Linear op{.weight = part.weight,
                             .x = x,
                             .y = y,
                             .bias = part.bias,
                             .accumulate = accumulate,
                             .y_stride = projection.n,
                             .y_column = part.column};
    DP_CHECK(kernels::record(ctx, op));
  }
  return {};
}

Result<void> record_gated(kernels::Context& ctx, const Projection& projection, const kernels::Activation& x,
                          const kernels::Activation& y, ActivationFn activate) {
  if (projection.parts.size() == 1) {
    const Projection::Part& part = projection.parts[0];
    return kernels::record(ctx, kernels::Linear{.weight = part.weight,
                                                .x = x,
                                                .y = y.f32,
                                                .y_q8 = y.q8,
                                                .y_f16 = y.f16,
                                                .y_only_f16 = y.only_f16,
                                                .bias = part.bias,
                                                .gate = activate});
  }
  // Gate and up are stored in different formats: two products, then the activation on its own.
  const uint64_t bytes = static_cast<uint64_t>(ctx.max_rows) * projection.n * 4;
  const kernels::TensorView gate_up = ctx.plan.scratch("gate_up", bytes);
  DP_CHECK(record(ctx, projection, x, gate_up, /*accumulate=*/false));
  return kernels::record(
      ctx, kernels::Glu{.gate_up = gate_up, .y = y, .n = projection.n / 2, .activate = activate});
}

Result<Logits> record_head(kernels::Context& ctx, const Projection& head, const Activation& x,
                           kernels::TensorView logits, bool only_best) {
  const kernels::Weight& weight = head.parts[0].weight;
  if (!only_best || !kernels::leaves_best(ctx, weight)) {
    DP_CHECK(record(ctx, head, x, logits, /*accumulate=*/false));
    return Logits{.all = logits, .best = {}};
  }
  const uint32_t count = kernels::best_count(weight);
  const kernels::TensorView best = ctx.plan.scratch("best", count * kernels::kBestBytes);
  DP_CHECK(kernels::record(ctx, kernels::Linear{.weight = weight, .x = x, .y = {}, .best = best}));
  return Logits{.all = {}, .best = best, .best_count = count};
}

bool wants_q8(const kernels::Context& ctx, const Projection& projection) {
  return std::ranges::any_of(
      projection.parts, [&](const Projection::Part& part) { return kernels::wants_q8(ctx, part.weight); });
}

bool wants_f16(const kernels::Context& ctx, const Projection& projection) {
  return std::ranges::any_of(
      projection.parts, [&](const Projection::Part& part) { return kernels::wants_f16(ctx, part.weight); });
}

bool wants_only_f16(const kernels::Context& ctx, const Projection& projection) {
  return std::ranges::all_of(
      projection.parts, [&](const Projection::Part& part) { return kernels::wants_f16(ctx, part.weight); });
}

bool joins_norm(const kernels::Context& ctx, const Projection& projection, ActivationFn gate) {
  const std::vector<Projection::Part>& parts = projection.parts;
  const size_t most = gate == ActivationFn::kNone ? 2 : 1;
  if (parts.size() > most || std::ranges::any_of(parts, [](const auto& part) { return part.bias.valid(); })) {
    return false;
  }
  return kernels::joins_norm(ctx, parts[0].weight, parts.size() == 2 ? &parts[1].weight : nullptr, gate);
}

bool joins_splits(const kernels::Context& ctx, const Projection& projection) {
  return projection.parts.size() == 1 && kernels::joins_splits(ctx, projection.parts[0].weight);
}

void add_forms(kernels::Context& ctx, const Projection& reader, uint32_t k, const std::string& label,
               Activation& a) {
  if (wants_q8(ctx, reader)) a.q8 = ctx.plan.scratch(label + ".q8", kernels::q8_bytes(ctx.max_rows, k));
  if (!wants_f16(ctx, reader)) return;
  a.f16 = ctx.plan.scratch(label + ".f16", kernels::f16_bytes(ctx.max_rows, k));
  a.only_f16 = wants_only_f16(ctx, reader);
}

Activation gated_scratch(kernels::Context& ctx, const Projection& projection, const Projection& reader,
                         ActivationFn activate) {
  const uint32_t n = projection.n / 2;
  Activation y;
  add_forms(ctx, reader, n, "gated", y);
  // A product that finishes norms also writes 8 bits alone.
  if (!y.q8.valid() || !finishes_norm(ctx, projection, activate)) {
    y.f32 = ctx.plan.scratch("gated", static_cast<uint64_t>(ctx.max_rows) * n * 4);
  }
  return y;
}

Result<Activation> record_norm(kernels::Context& ctx, kernels::TensorView x, const NormedReader& next) {
  kernels::Context reader_ctx = ctx;
  if (next.last_row_only) reader_ctx.max_rows = 1;
  const uint32_t k = next.reader.k;
  Activation h{.f32 = ctx.plan.scratch("normed", static_cast<uint64_t>(reader_ctx.max_rows) * k * 4)};
  add_forms(reader_ctx, next.reader, k, "normed", h);
  ctx.role = next.role;
  DP_CHECK(kernels::record(ctx, kernels::RmsNorm{.x = x,
                                                 .add = {},
                                                 .weight = next.weight,
                                                 .y = h,
                                                 .n = k,
                                                 .eps = next.eps,
                                                 .last_row_only = next.last_row_only}));
  return h;
}

Result<Activation> record_add_norm(kernels::Context& ctx, const Projection& projection, const Activation& y,
                                   kernels::TensorView x, const NormedReader& next) {
  const bool is_joined = projection.parts.size() == 1 &&
                         kernels::begins_norm(ctx, projection.parts[0].weight) &&
                         finishes_norm(ctx, next.reader, next.gate);
  if (!is_joined) {
    DP_CHECK(record(ctx, projection, y, x, /*accumulate=*/true));
    return record_norm(ctx, x, next);
  }
  const bool q8 = wants_q8(ctx, next.reader);
  const kernels::BegunNorm begun{
      .buffer = ctx.plan.scratch("begun_norm", kernels::BegunNorm::bytes(next.reader.k, q8)),
      .weight = next.weight,
      .k = next.reader.k,
      .eps = next.eps,
      .q8 = q8};
  DP_CHECK(kernels::record(ctx, kernels::Linear{.weight = projection.parts[0].weight,
                                                .x = y,
                                                .y = x,
                                                .bias = projection.parts[0].bias,
                                                .accumulate = true,
                                                .next = begun}));
  return begun.activation();
}

}  // namespace doppler::model
