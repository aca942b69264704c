// linear.h: the choice of a variant, checks, and the conversions around a product whose variant does not
// read or write a form itself. Read next: product.h, product_refusals.cpp.
#include "kernels/linear/linear.h"

#include <algorithm>
#include <utility>

#include "kernels/common/dispatch.h"
#include "kernels/linear/product.h"

namespace doppler::kernels {
namespace {

Result<void> check_weight(const Context& ctx, const Weight& weight) {
  if (weight.n == 0 || weight.k == 0) {
    return fail(ErrorKind::kInternal, "Weight of %s is %u x %u; both must be positive.", ctx.op_label.c_str(),
                weight.n, weight.k);
  }
  uint32_t next = 0;
  for (const WeightPiece& piece : weight.pieces) {
    if (piece.first_row != next || piece.rows == 0) {
      return fail(ErrorKind::kInternal, "A piece of the weight of %s holds %u rows from %u; row %u is next.",
                  ctx.op_label.c_str(), piece.rows, piece.first_row, next);
    }
    next += piece.rows;
    DP_CHECK(check_view(piece.buffer, weight_layout(weight.format, piece.rows, weight.k).total_bytes,
                        "a weight piece of " + ctx.op_label));
  }
  if (next != weight.n) {
    return fail(ErrorKind::kInternal, "The pieces of the weight of %s hold %u rows of %u.",
                ctx.op_label.c_str(), next, weight.n);
  }
  return {};
}

Result<void> check_add_norm(const Context& ctx, const AddRmsNorm& op, uint32_t k) {
  for (const TensorView& view : {op.residual, op.branch, op.add_weight, op.weight, op.x}) {
    DP_CHECK(check_view(view, sizeof(float) * k, "a part of x of " + ctx.op_label));
  }
  return {};
}

Result<void> check_partials(const Context& ctx, const SplitPartials& x, uint32_t k) {
  if (x.head_dim % kQ8Block != 0 || uint64_t{x.n_heads} * x.head_dim != k || x.splits == 0 ||
      x.splits > kMaxReducedSplits || x.keys_per_split == 0) {
    return fail(
        ErrorKind::kInternal,
        "x of %s, %u splits of %u heads of %u, is not %u columns in 1 to %u splits of whole blocks of %u.",
        ctx.op_label.c_str(), x.splits, x.n_heads, x.head_dim, k, kMaxReducedSplits, kQ8Block);
  }
  return check_view(x.partials, x.bytes(), "the splits of x of " + ctx.op_label);
}

// The forms of x that are there: whole, or before the division of a deferred norm.
Result<void> check_rows(const Context& ctx, const Rows& x, uint32_t k) {
  if (x.q8.valid()) DP_CHECK(check_view(x.q8, q8_bytes(ctx.max_rows, k), "x.q8 of " + ctx.op_label));
  if (x.f16.valid()) DP_CHECK(check_view(x.f16, f16_bytes(ctx.max_rows, k), "x.f16 of " + ctx.op_label));
  if (!x.f32.valid() && (x.q8.valid() || x.f16.valid())) return {};
  return check_view(x.f32, sizeof(float) * ctx.max_rows * k, "x of " + ctx.op_label);
}

Result<void> check_prologue(const Context& ctx, const Prologue& x, uint32_t k) {
  if (const auto* rows = std::get_if<Rows>(&x)) return check_rows(ctx, *rows, k);
  if (const auto* partials = std::get_if<SplitPartials>(&x)) return check_partials(ctx, *partials, k);
  if (const auto* add = std::get_if<AddRmsNorm>(&x)) return check_add_norm(ctx, *add, k);
  return check_view(std::get<DeferredNorm>(x).buffer, DeferredNorm::bytes(k, std::get<DeferredNorm>(x).q8),
                    "the deferred norm of " + ctx.op_label);
}

// y, f32 [rows, stride]; the product writes some columns.
Result<void> check_columns(const Context& ctx, TensorView y, uint32_t columns, uint32_t y_stride,
                           uint32_t y_column) {
  const uint32_t stride = y_stride == 0 ? columns : y_stride;
  if (y_column > stride || columns > stride - y_column) {
    return fail(ErrorKind::kInternal, "Columns %u to %u do not fit rows of %u.", y_column, y_column + columns,
                stride);
  }
  return check_view(y, sizeof(float) * ctx.max_rows * stride, "y of " + ctx.op_label);
}

// The forms of y, [rows, columns], of a product that activates.
Result<void> check_forms(const Context& ctx, const Rows& y, uint32_t columns) {
  if (y.q8.valid() && columns % 32 != 0) {
    return fail(ErrorKind::kInternal, "q8 of %u outputs needs whole tiles of 32.", columns);
  }
  if (y.f16.valid() && columns % 16 != 0) {
    return fail(ErrorKind::kInternal, "f16 of %u outputs needs tiles of 16.", columns);
  }
  if (y.q8.valid()) DP_CHECK(check_view(y.q8, q8_bytes(ctx.max_rows, columns), "y.q8 of " + ctx.op_label));
  if (y.f16.valid()) {
    DP_CHECK(check_view(y.f16, f16_bytes(ctx.max_rows, columns), "y.f16 of " + ctx.op_label));
  }
  if (!y.f32.valid() && (y.q8.valid() || y.f16.valid())) return {};
  return check_view(y.f32, sizeof(float) * ctx.max_rows * columns, "y of " + ctx.op_label);
}

Result<void> check_gate(const Context& ctx, const Gate& gate, uint32_t n) {
  if (n % 2 == 0) return check_forms(ctx, gate.y, n / 2);
  return fail(ErrorKind::kInternal, "A gated product of %u rows: they must be even.", n);
}

// Checks the activation of gates or sums in a product.
Result<void> check_activation(const Context& ctx, ActivationFn activation) {
  using enum ActivationFn;
  if (activation == kSilu || activation == kGeluTanh || activation == kGeluErf) return {};
  return fail(ErrorKind::kInternal, "The product of %s does not know the activation %s.",
              ctx.op_label.c_str(), activation_name(activation));
}

Result<void> check_gate_of(const Context& ctx, const Linear& op, const GateOf& gate) {
  const uint32_t n = op.weight.n;
  if (op.bias.valid() || gate.y.f16.valid()) {
    return fail(ErrorKind::kInternal, "The gate of %s has a bias, or writes f16.", ctx.op_label.c_str());
  }
  DP_CHECK(check_activation(ctx, gate.activation));
  DP_CHECK(check_view(gate.x, sizeof(float) * n, "the value gated by " + ctx.op_label));
  if (gate.y.q8.valid()) DP_CHECK(check_view(gate.y.q8, q8_bytes(1, n), "y.q8 of " + ctx.op_label));
  if (!gate.y.f32.valid() && gate.y.q8.valid()) return {};
  return check_view(gate.y.f32, sizeof(float) * n, "y of " + ctx.op_label);
}

Result<void> check_epilogue(const Context& ctx, const Linear& op) {
  const uint32_t n = op.weight.n;
  if (op.bias.valid()) DP_CHECK(check_view(op.bias, sizeof(float) * n, "bias of " + ctx.op_label));
  if (const auto* store = std::get_if<Store>(&op.y)) {
    return check_columns(ctx, store->y, n, store->y_stride, store->y_column);
  }
  if (const auto* residual = std::get_if<AddResidual>(&op.y)) {
    return check_columns(ctx, residual->y, n, residual->y_stride, residual->y_column);
  }
  if (const auto* gate = std::get_if<Gate>(&op.y)) return check_gate(ctx, *gate, n);
  if (const auto* argmax = std::get_if<TileArgmax>(&op.y)) {
    if (op.bias.valid()) {
      return fail(ErrorKind::kInternal, "The best outputs of %s are asked of a product with bias.",
                  ctx.op_label.c_str());
    }
    if (argmax->y.valid()) DP_CHECK(check_view(argmax->y, sizeof(float) * n, "y of " + ctx.op_label));
    return check_view(argmax->best, kBestBytes * best_count(op.weight), "best of " + ctx.op_label);
  }
  if (const auto* gate = std::get_if<GateOf>(&op.y)) return check_gate_of(ctx, op, *gate);
  if (const auto* left = std::get_if<LeaveSums>(&op.y)) {
    if (op.bias.valid()) {
      return fail(ErrorKind::kInternal, "%s leaves its sums, and has a bias.", ctx.op_label.c_str());
    }
    return check_view(left->sums.partials, left->sums.bytes(), "the sums of " + ctx.op_label);
  }
  if (const auto* activate = std::get_if<ActivateSums>(&op.y)) {
    DP_CHECK(check_activation(ctx, activate->activation));
    return check_forms(ctx, activate->y, n);
  }
  const auto& defer = std::get<AddResidualDeferNorm>(op.y);
  DP_CHECK(check_columns(ctx, defer.y, n, 0, 0));
  DP_CHECK(check_view(defer.norm.buffer, DeferredNorm::bytes(n, defer.norm.q8),
                      "the deferred norm after " + ctx.op_label));
  return check_view(defer.norm.weight, sizeof(float) * n, "norm weight of " + ctx.op_label);
}

// Checks that the prologue goes with the epilogue: a product that makes x itself has neither bias nor residual, and
// writes whole rows.
Result<void> check_combination(const Context& ctx, const Linear& op) {
  const auto* store = std::get_if<Store>(&op.y);
  const auto* gate = std::get_if<Gate>(&op.y);
  const bool is_gate_of = std::holds_alternative<GateOf>(op.y);
  bool is_possible = true;
  if (std::holds_alternative<AddRmsNorm>(op.x)) {
    const bool whole = store && (store->y_stride == 0 || store->y_stride == op.weight.n);
    is_possible = !op.bias.valid() && (whole || (gate && !gate->y.f32.valid() && !gate->y.f16.valid()));
  } else if (std::holds_alternative<SplitPartials>(op.x)) {
    is_possible = !gate && !is_gate_of && !std::holds_alternative<TileArgmax>(op.y);
  }
  if (is_possible) return {};
  return fail(ErrorKind::kInternal, "The prologue of %s does not go with its bias and epilogue.",
              ctx.op_label.c_str());
}

std::string shape_text(const ProductShape& shape) {
  return format_text("%s %ux%u", weight_format_info(shape.format).name, shape.n, shape.k);
}

PrologueKind kind_of(const Prologue& x) { return static_cast<PrologueKind>(x.index()); }
EpilogueKind kind_of(const Epilogue& y) { return static_cast<EpilogueKind>(y.index()); }

Result<void> record_product(Context& ctx, const Product& op) {
  switch (op.row.algorithm) {
    case Algorithm::kTiled:
      return record_matvec_tile(ctx, op);
    case Algorithm::kOnce:
    case Algorithm::kOnceOfCpu:
    case Algorithm::kFew:
      return record_matmul_skinny(ctx, op);
    case Algorithm::kNarrow:
      return record_matmul_narrow(ctx, op);
    default:
      return ctx.max_rows == 1 ? record_matvec(ctx, op) : record_matmul(ctx, op);
  }
}

// refuse_pair() says which algorithms have one.
Result<void> record_pair(Context& ctx, const Product& op) {
  return op.row.algorithm == Algorithm::kTiled ? record_matvec_tile_pair(ctx, op)
                                               : record_matmul_skinny(ctx, op);
}

// Makes the form of x that the row reads, if its producer did not: also of a deferred norm's x * weight.
Result<void> convert_input(Context& ctx, Product& op) {
  if (op.prologue_as<AddRmsNorm>() || op.prologue_as<SplitPartials>()) return {};
  const uint32_t k = op.weight.k;
  if (op.row.q8 && !op.x.q8.valid()) {
    op.x.q8 = ctx.plan.scratch("x_q8", q8_bytes(ctx.max_rows, k));
    return record(ctx, QuantizeQ8{.x = op.x.f32, .q8 = op.x.q8, .k = k});
  }
  if (op.row.f16 && !op.x.f16.valid()) {
    op.x.f16 = ctx.plan.scratch("x_f16", f16_bytes(ctx.max_rows, k));
    return record(ctx, FragmentF16{.x = op.x.f32, .f16 = op.x.f16, .k = k});
  }
  if (op.row.q8 || op.row.f16) return {};
  return check_view(op.x.f32, sizeof(float) * ctx.max_rows * k, "x of " + ctx.op_label);
}

Rows rows_of(const Prologue& x) {
  if (const auto* rows = std::get_if<Rows>(&x)) return *rows;
  const auto* norm = std::get_if<DeferredNorm>(&x);
  if (!norm) return {};
  return norm->q8 ? Rows{.q8 = norm->values()} : Rows{.f32 = norm->values()};
}

Product product_of(const Linear& op, const ProductRow& row, Choice& choice) {
  return {.weight = op.weight,
          .row = row,
          .choice = choice,
          .prologue = op.x,
          .x = rows_of(op.x),
          .bias = op.bias,
          .epilogue = op.y};
}

// The forms of an activated y.
struct ActivatedForms {
  Rows* y = nullptr;  // null: the product does not activate
  uint32_t columns = 0;
};
ActivatedForms activated_forms(Epilogue& epilogue, uint32_t n) {
  if (auto* gate = std::get_if<Gate>(&epilogue)) return {&gate->y, n / 2};
  if (auto* activate = std::get_if<ActivateSums>(&epilogue)) return {&activate->y, n};
  return {};
}

// The forms of an activated y that the row does not write itself, with the f32 that they are made of, which the row
// then writes.
Rows take_forms_apart(Context& ctx, Product& op, const ActivatedForms& forms) {
  if (!forms.y) return {};
  Rows& y = *forms.y;
  Rows apart;
  if (!writes_q8(op.row)) apart.q8 = std::exchange(y.q8, {});
  if (!writes_f16(op.row)) apart.f16 = std::exchange(y.f16, {});
  const bool may_skip_f32 = op.row.algorithm == Algorithm::kTiled || writes_f16(op.row);
  if (!y.f32.valid() && (apart.q8.valid() || apart.f16.valid() || !may_skip_f32)) {
    y.f32 = ctx.plan.scratch("gated", uint64_t{ctx.max_rows} * forms.columns * sizeof(float));
  }
  apart.f32 = y.f32;
  return apart;
}

}  // namespace

InputForm ProductChoice::reads() const {
  return row->q8 ? InputForm::kQ8 : row->f16 ? InputForm::kF16 : InputForm::kF32;
}

Result<ProductChoice> resolve_product(const Context& ctx, const Weight& weight, ActivationFn gate) {
  const ProductShape shape{.format = weight.format,
                           .n = weight.n,
                           .k = weight.k,
                           .max_rows = std::max(ctx.max_rows, ctx.least_rows),
                           .gate = gate};
  DP_TRY(Resolved<ProductRow> resolved,
         (resolve<ProductRow, ProductShape>(product_operation(shape), product_variants(shape), shape,
                                            shape_text(shape), ctx.plan.caps(), ctx.policy)));
  return ProductChoice{
      .row = resolved.row, .choice = std::move(resolved.choice), .gate = gate, .max_rows = ctx.max_rows};
}

std::optional<SplitSums> left_sums(Context& ctx, const Weight& weight, const ProductChoice& choice) {
  if (!refuse_epilogue(ctx, weight, choice, EpilogueKind::kLeaveSums).empty()) return std::nullopt;
  Choice noted = choice.choice;
  const Prologue any_x;
  const Product product{.weight = weight, .row = *choice.row, .choice = noted, .prologue = any_x};
  const SplitSums sums = choice.row->algorithm == Algorithm::kNarrow ? narrow_sums(ctx, product)
                         : choice.row->algorithm == Algorithm::kFew  ? few_sums(ctx, product)
                                                                     : matrix_sums(ctx, product);
  if (sums.splits < 2) return std::nullopt;
  return sums;
}

uint32_t best_count(const Weight& weight) {
  uint32_t tiles = 0;
  for (const WeightPiece& piece : weight.pieces) tiles += (piece.rows + kTileRows - 1) / kTileRows;
  return tiles;
}

Result<void> record(Context& ctx, const ProductChoice& choice, const Linear& op) {
  DP_CHECK(check_weight(ctx, op.weight));
  DP_CHECK(check_prologue(ctx, op.x, op.weight.k));
  DP_CHECK(check_epilogue(ctx, op));
  DP_CHECK(check_combination(ctx, op));
  const auto* gate = std::get_if<Gate>(&op.y);
  if (choice.gate != (gate ? gate->activation : ActivationFn::kNone) || choice.max_rows != ctx.max_rows) {
    return fail(ErrorKind::kInternal, "%s was resolved for another gate or number of rows than %s has.",
                name_of(choice).c_str(), ctx.op_label.c_str());
  }
  std::string refused = refuse_prologue(ctx, op.weight, choice, kind_of(op.x));
  if (refused.empty()) refused = refuse_epilogue(ctx, op.weight, choice, kind_of(op.y));
  if (!refused.empty()) {
    return fail(ErrorKind::kInternal, "%s does not have the prologue or epilogue of %s: %s.",
                name_of(choice).c_str(), ctx.op_label.c_str(), refused.c_str());
  }
  Choice noted = choice.choice;
  Product product = product_of(op, *choice.row, noted);
  DP_CHECK(convert_input(ctx, product));
  const ActivatedForms forms = activated_forms(product.epilogue, op.weight.n);
  const Rows apart = take_forms_apart(ctx, product, forms);
  DP_CHECK(record_product(ctx, product));
  note_choice(ctx, noted);
  const uint32_t columns = forms.columns;
  if (apart.q8.valid()) DP_CHECK(record(ctx, QuantizeQ8{.x = apart.f32, .q8 = apart.q8, .k = columns}));
  if (apart.f16.valid()) DP_CHECK(record(ctx, FragmentF16{.x = apart.f32, .f16 = apart.f16, .k = columns}));
  return {};
}

Result<void> record(Context& ctx, const ProductChoice& first, const ProductChoice& second,
                    const LinearPair& op) {
  const uint64_t outputs = uint64_t{op.first.n} + op.second.n;
  DP_CHECK(check_view(op.y, outputs * ctx.max_rows * sizeof(float), "y of " + ctx.op_label));
  DP_CHECK(check_weight(ctx, op.first));
  DP_CHECK(check_weight(ctx, op.second));
  DP_CHECK(check_prologue(ctx, op.x, op.first.k));
  if (op.bias.valid()) DP_CHECK(check_view(op.bias, outputs * sizeof(float), "bias of " + ctx.op_label));
  const std::string refused = refuse_pair(ctx, op.first, first, op.second, second,
                                          {.prologue = kind_of(op.x), .has_bias = op.bias.valid()});
  if (!refused.empty()) {
    return fail(ErrorKind::kInternal, "%s and %s of %s cannot be one dispatch: %s.", name_of(first).c_str(),
                name_of(second).c_str(), ctx.op_label.c_str(), refused.c_str());
  }
  Choice noted = first.choice;
  const Linear reader{
      .weight = op.first, .x = op.x, .bias = op.bias, .y = Store{.y = op.y}};  // the product points into it
  Product a = product_of(reader, *first.row, noted);
  DP_CHECK(convert_input(ctx, a));
  const SecondProduct b{.weight = op.second, .row = *second.row};
  a.second = &b;
  DP_CHECK(record_pair(ctx, a));
  note_choice(ctx, noted);
  note_choice(ctx, second.choice);
  return {};
}

}  // namespace doppler::kernels
