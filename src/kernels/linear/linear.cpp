// linear.h: checks, the choice of a variant, and what surrounds the product itself: quantising x where a
// chosen variant wants it, a gate as a second kernel where the product cannot do it. Read next: product.h.
#include "kernels/linear/linear.h"

#include "kernels/common/dispatch.h"
#include "kernels/glu/glu.h"
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

ProductShape shape_of(const Weight& weight, uint32_t max_rows, ActivationFn gate) {
  return {.format = weight.format, .n = weight.n, .k = weight.k, .max_rows = max_rows, .gate = gate};
}

Result<void> check_weight(const Context& ctx, const Weight& weight) {
  if (weight.n == 0 || weight.k == 0) {
    return fail(ErrorKind::kInternal, "Weight of %s is %u x %u; both must be positive.", ctx.role.c_str(),
                weight.n, weight.k);
  }
  uint32_t next = 0;
  for (const WeightPiece& piece : weight.pieces) {
    if (piece.first_row != next || piece.rows == 0) {
      return fail(ErrorKind::kInternal, "A piece of the weight of %s holds %u rows from %u; row %u is next.",
                  ctx.role.c_str(), piece.rows, piece.first_row, next);
    }
    next += piece.rows;
    DP_CHECK(check_view(piece.buffer, weight_layout(weight.format, piece.rows, weight.k).total_bytes,
                        "a weight piece of " + ctx.role));
  }
  if (next != weight.n) {
    return fail(ErrorKind::kInternal, "The pieces of the weight of %s hold %u rows of %u.", ctx.role.c_str(),
                next, weight.n);
  }
  return {};
}

Result<void> check_joined(const Context& ctx, const JoinedNorm& op, uint32_t k) {
  for (const TensorView& view : {op.residual, op.branch, op.add_weight, op.weight, op.x}) {
    DP_CHECK(check_view(view, sizeof(float) * k, "a part of x of " + ctx.role));
  }
  return {};
}

Result<void> check_splits(const Context& ctx, const SplitRow& x, uint32_t k) {
  if (x.head_dim % kQ8Block != 0 || uint64_t{x.n_heads} * x.head_dim != k || x.splits == 0 ||
      x.splits > kMostJoinedSplits || x.keys_per_split == 0) {
    return fail(
        ErrorKind::kInternal,
        "x of %s, %u splits of %u heads of %u, is not %u columns in 1 to %u splits of whole blocks of %u.",
        ctx.role.c_str(), x.splits, x.n_heads, x.head_dim, k, kMostJoinedSplits, kQ8Block);
  }
  return check_view(x.partials, x.bytes(), "the splits of x of " + ctx.role);
}

Result<void> check(const Context& ctx, const Linear& op) {
  const Weight& weight = op.weight;
  DP_CHECK(check_weight(ctx, weight));
  const bool gated = op.gate != ActivationFn::kNone;
  if (gated && (weight.n % 2 != 0 || op.accumulate || op.y_stride != 0)) {
    return fail(ErrorKind::kInternal,
                "Gated product of %u rows: they must be even, without accumulate and y_stride.", weight.n);
  }
  if (op.y_q8.valid() && (!gated || weight.n % 64 != 0)) {
    return fail(ErrorKind::kInternal, "y_q8 of %u outputs needs a gate and whole tiles of 32.", weight.n / 2);
  }
  if (op.y_f16.valid() && (!gated || weight.n % 32 != 0)) {
    return fail(ErrorKind::kInternal, "y_f16 of %u outputs needs a gate and tiles of 16.", weight.n / 2);
  }
  const uint32_t columns = gated ? weight.n / 2 : weight.n;
  const uint32_t stride = op.y_stride == 0 ? columns : op.y_stride;
  if (op.y_column > stride || columns > stride - op.y_column) {
    return fail(ErrorKind::kInternal, "Columns %u to %u do not fit rows of %u.", op.y_column,
                op.y_column + columns, stride);
  }
  const uint64_t floats = uint64_t{ctx.max_rows} * sizeof(float);
  if (op.x.joined.valid()) {
    DP_CHECK(check_joined(ctx, op.x.joined, weight.k));
  } else if (op.x.splits.valid()) {
    DP_CHECK(check_splits(ctx, op.x.splits, weight.k));
  } else if (op.x.f32.valid() || (!op.x.q8.valid() && !op.x.f16.valid())) {
    DP_CHECK(check_view(op.x.f32, floats * weight.k, "x of " + ctx.role));
  }
  const bool is_left_out = op.y_q8.valid() || op.best.valid();
  if (op.y.valid() || !is_left_out) DP_CHECK(check_view(op.y, floats * stride, "y of " + ctx.role));
  if (op.best.valid()) {
    if (gated || op.bias.valid() || op.accumulate || op.y_stride != 0 || op.next.buffer.valid()) {
      return fail(ErrorKind::kInternal,
                  "The best outputs of %s are asked of a product with bias, gate, residual or y_stride.",
                  ctx.role.c_str());
    }
    DP_CHECK(check_view(op.best, kBestBytes * best_count(weight), "best of " + ctx.role));
  }
  if (op.next.buffer.valid()) {
    DP_CHECK(check_view(op.next.buffer, BegunNorm::bytes(weight.n, op.next.q8), "next of " + ctx.role));
    DP_CHECK(check_view(op.next.weight, sizeof(float) * weight.n, "norm weight of " + ctx.role));
  }
  if (op.x.q8.valid()) DP_CHECK(check_view(op.x.q8, q8_bytes(ctx.max_rows, weight.k), "x.q8 of " + ctx.role));
  if (op.x.f16.valid()) {
    DP_CHECK(check_view(op.x.f16, f16_bytes(ctx.max_rows, weight.k), "x.f16 of " + ctx.role));
  }
  if (op.bias.valid()) DP_CHECK(check_view(op.bias, sizeof(float) * weight.n, "bias of " + ctx.role));
  return {};
}

// All workgroups together read the input's parts so often from the cache: beyond that a dispatch costs less.
constexpr uint64_t kMostJoinedBytes = 16 << 20;

std::string shape_text(const ProductShape& shape) {
  return format_text("%s %ux%u", weight_format_info(shape.format).name, shape.n, shape.k);
}

bool is_once_q8(const ProductRow& row) { return row.algorithm == Algorithm::kOnce && row.q8; }

// What record() will choose, or null where it will fail.
const ProductRow* coming_row(const Context& ctx, const Weight& weight, ActivationFn gate) {
  const ProductShape shape = shape_of(weight, ctx.max_rows, gate);
  return would_select(product_operation(shape), product_variants(shape), shape, shape_text(shape),
                      ctx.plan.caps(), ctx.policy);
}

// Whether the row makes the gated product in one dispatch: a matvec, or whole tiles of gates on matrix units or, in 8
// bits, of a few rows.
bool gates_itself(const ProductRow* row, uint32_t max_rows, const Weight& weight) {
  if (weight.pieces.size() > 1) return false;
  if (max_rows == 1) return true;
  const bool gates = row != nullptr && (row->algorithm == Algorithm::kMatrix || is_once_q8(*row));
  return gates && weight.n % (2 * kTileRows) == 0;
}

Result<void> record_product(Context& ctx, const Linear& op, const ProductRow& row) {
  switch (row.algorithm) {
    case Algorithm::kTiled:
      return record_matvec_tile(ctx, op, row);
    case Algorithm::kOnce:
    case Algorithm::kOnceOfCpu:
      return record_matmul_few(ctx, op, row);
    default:
      return ctx.max_rows == 1 ? record_matvec(ctx, op, row) : record_matmul(ctx, op, row);
  }
}

// The product into [rows, 2n], then the activation as a kernel of its own.
Result<void> record_gate_apart(Context& ctx, const Linear& op) {
  const uint64_t bytes = uint64_t{ctx.max_rows} * op.weight.n * sizeof(float);
  Linear product = op;
  product.gate = ActivationFn::kNone;
  product.y_q8 = {};
  product.y_f16 = {};
  product.y = ctx.plan.scratch("gate_up", bytes);
  DP_CHECK(record(ctx, product));
  return record(ctx, Glu{.gate_up = product.y,
                         .y = {.f32 = op.y, .q8 = op.y_q8, .f16 = op.y_f16, .only_f16 = op.y_only_f16},
                         .n = op.weight.n / 2,
                         .activate = op.gate});
}

}  // namespace

bool wants_q8(const Context& ctx, const Weight& weight, ActivationFn gate) {
  const ProductRow* row = coming_row(ctx, weight, gate);
  return row != nullptr && row->q8;
}

bool wants_f16(const Context& ctx, const Weight& weight, ActivationFn gate) {
  const ProductRow* row = coming_row(ctx, weight, gate);
  return row != nullptr && row->f16;
}

bool finishes_norm(const Context& ctx, const Weight& weight, ActivationFn gate) {
  const ProductRow* row = coming_row(ctx, weight, gate);
  const bool joined = gate == ActivationFn::kNone || weight.pieces.size() == 1;
  return row != nullptr && row->algorithm == Algorithm::kTiled && joined;
}

bool begins_norm(const Context& ctx, const Weight& weight) {
  return finishes_norm(ctx, weight, ActivationFn::kNone) && weight.pieces.size() == 1 &&
         weight.n % kTileRows == 0;
}

bool leaves_best(const Context& ctx, const Weight& weight) {
  return finishes_norm(ctx, weight, ActivationFn::kNone);
}

uint32_t best_count(const Weight& weight) {
  uint32_t tiles = 0;
  for (const WeightPiece& piece : weight.pieces) tiles += (piece.rows + kTileRows - 1) / kTileRows;
  return tiles;
}

Result<void> record(Context& ctx, const Linear& op) {
  DP_CHECK(check(ctx, op));
  const bool gated = op.gate != ActivationFn::kNone;
  if (gated && !gates_itself(coming_row(ctx, op.weight, op.gate), ctx.max_rows, op.weight)) {
    return record_gate_apart(ctx, op);
  }

  const ProductShape shape = shape_of(op.weight, ctx.max_rows, op.gate);
  DP_TRY(const ProductRow* row,
         (select<ProductRow, ProductShape>(product_operation(shape), product_variants(shape), shape,
                                           shape_text(shape), ctx)));
  const size_t chosen = ctx.chosen;
  Linear product = op;
  const bool is_tiled = row->algorithm == Algorithm::kTiled;
  if (!is_tiled && (op.x.square_sums.valid() || op.next.buffer.valid() || !op.y.valid())) {
    return fail(ErrorKind::kInternal, "%s of %s neither finishes nor begins norms, and writes y as f32.",
                std::string(row->name).c_str(), ctx.role.c_str());
  }
  if (op.x.joined.valid()) {
    if (!joins_norm(ctx, op.weight, nullptr, op.gate) || op.bias.valid() || op.accumulate ||
        (op.y_stride != 0 && op.y_stride != op.weight.n) || (gated && op.y.valid())) {
      return fail(ErrorKind::kInternal, "%s of %s cannot make its input of a residual and a branch.",
                  std::string(row->name).c_str(), ctx.role.c_str());
    }
    return record_matvec_tile(ctx, op, *row);
  }
  if (op.x.splits.valid()) {
    if (!joins_splits(ctx, op.weight) || gated || op.best.valid()) {
      return fail(ErrorKind::kInternal, "%s of %s cannot join the splits of its input.",
                  std::string(row->name).c_str(), ctx.role.c_str());
    }
    return record_matvec_tile(ctx, op, *row);
  }
  if (!row->q8 && !row->f16)
    DP_CHECK(check_view(op.x.f32, sizeof(float) * ctx.max_rows * op.weight.k, "x of " + ctx.role));
  if (row->q8 && !op.x.q8.valid()) {
    product.x.q8 = ctx.plan.scratch("x_q8", q8_bytes(ctx.max_rows, op.weight.k));
    DP_CHECK(record(ctx, QuantizeQ8{.x = op.x.f32, .q8 = product.x.q8, .k = op.weight.k}));
  }
  if (row->f16 && !op.x.f16.valid()) {
    product.x.f16 = ctx.plan.scratch("x_f16", f16_bytes(ctx.max_rows, op.weight.k));
    DP_CHECK(record(ctx, FragmentF16{.x = op.x.f32, .f16 = product.x.f16, .k = op.weight.k}));
  }
  ctx.chosen = chosen;  // the forms of x made choices of their own
  DP_CHECK(record_product(ctx, product, *row));
  if (op.y_q8.valid() && !is_tiled && !is_once_q8(*row)) {
    DP_CHECK(record(ctx, QuantizeQ8{.x = op.y, .q8 = op.y_q8, .k = op.weight.n / 2}));
  }
  if (op.y_f16.valid() && row->algorithm != Algorithm::kMatrix) {
    DP_CHECK(record(ctx, FragmentF16{.x = op.y, .f16 = op.y_f16, .k = op.weight.n / 2}));
  }
  return {};
}

bool joins_pair(const Context& ctx, const Weight& first, const Weight& second) {
  const auto fits = [&](const Weight& weight) {
    return finishes_norm(ctx, weight) && weight.pieces.size() == 1 && weight.n % kTileRows == 0;
  };
  return ctx.max_rows == 1 && first.k == second.k && fits(first) && fits(second) &&
         wants_q8(ctx, first) == wants_q8(ctx, second) &&
         (first.n + second.n) / kQ8Block <= ctx.plan.caps().max_workgroups;
}

bool joins_norm(const Context& ctx, const Weight& weight, const Weight* second, ActivationFn gate) {
  constexpr uint32_t kBuffers = 10;  // of matvec_tile_pair_joined
  constexpr uint32_t kUnitBytes =
      64;  // of 32 columns, in workgroup memory: codes, factors, parts of two norms
  const gpu::Caps& caps = ctx.plan.caps();
  const uint32_t sums = gate == ActivationFn::kNone ? 1 : 2;
  const uint64_t outputs = uint64_t{weight.n} / sums + (second ? second->n : 0);
  const auto fits = [&](const Weight& w) {
    return wants_q8(ctx, w, gate) && finishes_norm(ctx, w, gate) && w.pieces.size() == 1 &&
           w.n % kTileRows == 0;
  };
  return ctx.max_rows == 1 && caps.max_storage_buffers >= kBuffers && fits(weight) &&
         weight.k / 32 * kUnitBytes + tile_other_bytes(kMostTileInvocations * sums) <=
             caps.max_workgroup_bytes &&
         (second == nullptr || joins_pair(ctx, weight, *second)) &&
         outputs / kQ8Block <= caps.max_workgroups && weight.k / kQ8Block <= kMostTileInvocations &&
         weight.k / kQ8Block <= caps.max_invocations &&
         outputs / kTileRows * weight.k * 4 * sizeof(float) <= kMostJoinedBytes;
}

bool joins_splits(const Context& ctx, const Weight& weight) {
  // Of 32 columns in workgroup memory: joined, codes, factors; in f32 less.
  constexpr uint32_t kUnitBytes = 128 + 32 + 16;
  // An invocation holds two vectors for each split of every four columns that it joins: registers for eight columns.
  constexpr uint32_t kMostColumns = 2048;
  const gpu::Caps& caps = ctx.plan.caps();
  return begins_norm(ctx, weight) && weight.k <= kMostColumns &&
         weight.k / 32 * kUnitBytes + tile_other_bytes(kMostTileInvocations) <= caps.max_workgroup_bytes &&
         weight.n / kQ8Block <= caps.max_workgroups &&
         uint64_t{weight.n} / kQ8Block * kMostJoinedSplits * weight.k * sizeof(float) <= kMostJoinedBytes;
}

Result<void> record(Context& ctx, const LinearPair& op) {
  const uint64_t outputs = uint64_t{op.first.n} + op.second.n;
  DP_CHECK(check_view(op.y, outputs * sizeof(float), "y of " + ctx.role));
  const ProductRow* rows[2];
  for (const Weight* weight : {&op.first, &op.second}) {
    DP_CHECK(check_weight(ctx, *weight));
    const ProductShape shape = shape_of(*weight, ctx.max_rows, ActivationFn::kNone);
    DP_TRY(rows[weight == &op.second],
           (select<ProductRow, ProductShape>(product_operation(shape), product_variants(shape), shape,
                                             shape_text(shape), ctx)));
  }
  if (!joins_pair(ctx, op.first, op.second)) {
    return fail(ErrorKind::kInternal, "%s and %s of %s cannot be one dispatch.",
                std::string(rows[0]->name).c_str(), std::string(rows[1]->name).c_str(), ctx.role.c_str());
  }
  if (op.x.joined.valid()) {
    DP_CHECK(check_joined(ctx, op.x.joined, op.first.k));
    if (!joins_norm(ctx, op.first, &op.second)) {
      return fail(ErrorKind::kInternal, "%s of %s cannot make its input of a residual and a branch.",
                  std::string(rows[0]->name).c_str(), ctx.role.c_str());
    }
    return record_matvec_tile_pair(ctx, op, *rows[0], *rows[1]);
  }
  LinearPair pair = op;
  if (rows[0]->q8 && !op.x.q8.valid()) {
    pair.x.q8 = ctx.plan.scratch("x_q8", q8_bytes(1, op.first.k));
    DP_CHECK(record(ctx, QuantizeQ8{.x = op.x.f32, .q8 = pair.x.q8, .k = op.first.k}));
  }
  return record_matvec_tile_pair(ctx, pair, *rows[0], *rows[1]);
}

}  // namespace doppler::kernels
