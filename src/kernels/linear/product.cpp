// product.h: tables expanded over the formats, reasons for refusals, and views of weights and activations.
#include "kernels/linear/product.h"

#include <deque>

#include "base/text.h"
#include "kernels/common/dispatch.h"
#include "kernels/linear/weight_fragments.h"

namespace doppler::kernels {

std::string product_operation(const ProductShape& shape) {
  const char* operation = shape.max_rows == 1                ? "matvec"
                          : shape.max_rows <= kMaxSkinnyRows ? "matmul_skinny"
                          : shape.max_rows <= kMaxNarrowRows ? "matmul_narrow"
                                                             : "matmul";
  return format_text("%s.%s", operation, weight_format_info(shape.format).name);
}

std::span<const ProductRow> product_variants(const ProductShape& shape) {
  if (shape.max_rows == 1) return matvec_variants(shape.format);
  if (shape.max_rows <= kMaxSkinnyRows) return matmul_skinny_variants(shape.format);
  return shape.max_rows <= kMaxNarrowRows ? matmul_narrow_variants(shape.format)
                                          : matmul_variants(shape.format);
}

std::vector<std::vector<ProductRow>> expand_templates(std::string_view operation,
                                                      std::span<const ProductTemplate> templates) {
  static std::deque<std::string> names;  // rows keep views of the names
  std::vector<std::vector<ProductRow>> tables(kWeightFormatCount);
  for (size_t i = 0; i < tables.size(); ++i) {
    const WeightFormatInfo& info = weight_format_info(static_cast<WeightFormat>(i));
    for (const ProductTemplate& from : templates) {
      if (from.q8 && !info.quantised()) continue;
      if (from.tiled && !info.tiled) continue;
      if (from.plain && info.quantised()) continue;
      names.push_back(format_text("%s.%s.%s", std::string(operation).c_str(), info.name,
                                  std::string(from.suffix).c_str()));
      tables[i].push_back(
          {{.name = names.back(), .lane = from.lane, .needs = from.needs, .refuse = from.refuse},
           {.algorithm = from.algorithm, .q8 = from.q8, .f16 = from.f16}});
    }
  }
  return tables;
}

std::string pair_name(const Product& op) {
  return format_text("%s+%s", std::string(op.row.name).c_str(),
                     weight_format_info(op.second->weight.format).name);
}

std::string refuse_unless_whole_units(const ProductShape& shape, const gpu::Caps&) {
  if (shape.whole_units()) return "";
  return format_text("the column count (%u) is not a multiple of %u", shape.k,
                     std::max(32u, weight_format_info(shape.format).row_multiple));
}

std::string refuse_unless_tiles(const ProductShape& shape, const gpu::Caps& caps) {
  if (shape.gate != ActivationFn::kNone && shape.n % (2 * kTileRows) != 0) {
    return format_text("half of %u rows are not whole tiles of %u", shape.n, kTileRows);
  }
  return refuse_unless_whole_units(shape, caps);
}

std::string refuse_unless_tiles_fit(const ProductShape& shape, const gpu::Caps& caps) {
  const uint32_t sums = shape.gate == ActivationFn::kNone ? 1 : 2;
  const uint32_t bytes = shape.k / 32 * kTileUnitBytes + tile_other_bytes(kMostTileInvocations * sums);
  if (bytes > caps.max_workgroup_bytes) {
    return format_text("its %u columns take %u bytes of workgroup memory, this device has %u", shape.k, bytes,
                       caps.max_workgroup_bytes);
  }
  return refuse_unless_tiles(shape, caps);
}

std::string refuse_unless_cpu(const ProductShape& shape, const gpu::Caps& caps) {
  if (caps.type != gpu::AdapterType::kCpu) {
    return format_text("it is shaped for a CPU and this device is a %s", gpu::adapter_type_name(caps.type));
  }
  return refuse_unless_whole_units(shape, caps);
}

std::string refuse_unless_eights(const ProductShape& shape, const gpu::Caps&) {
  if (shape.k % 8 == 0) return "";
  return format_text("the column count (%u) is not a multiple of 8", shape.k);
}

std::string refuse_unless_cpu_and_eights(const ProductShape& shape, const gpu::Caps& caps) {
  if (caps.type != gpu::AdapterType::kCpu) return refuse_unless_cpu(shape, caps);
  return refuse_unless_eights(shape, caps);
}

std::string refuse_unless_matrix(const ProductShape& shape, const gpu::Caps& caps) {
  constexpr uint32_t kSubgroup = 32, kLeastMemory = 16384;
  if (caps.subgroup_min != kSubgroup || caps.subgroup_max != kSubgroup) {
    return format_text("it is written for subgroups of %u, this device has %u to %u", kSubgroup,
                       caps.subgroup_min, caps.subgroup_max);
  }
  if (caps.max_workgroup_bytes < kLeastMemory) {
    return format_text("it needs %u bytes of workgroup memory, this device has %u", kLeastMemory,
                       caps.max_workgroup_bytes);
  }
  return refuse_unless_whole_units(shape, caps);
}

std::string refuse_unless_small(const ProductShape& shape, const gpu::Caps& caps) {
  constexpr uint32_t kMostOutputs = 512;
  if (shape.n > kMostOutputs) {
    return format_text("%u outputs are workgroups enough in larger tiles", shape.n);
  }
  return refuse_unless_eights(shape, caps);
}

// It takes all outputs for 5 to 8 rows: four weight rows an invocation, which the alternative has not
// (skinny_shape.cpp).
std::string refuse_unless_few(const ProductShape& shape, const gpu::Caps& caps) {
  constexpr uint32_t kMostRows = 8, kMostOutputs = 8191, kFewRows = 4;
  if (shape.max_rows > kMostRows) return format_text("it is for %u rows at most", kMostRows);
  const uint32_t outputs = shape.gate == ActivationFn::kNone ? shape.n : shape.n / 2;
  if (shape.max_rows <= kFewRows && outputs > kMostOutputs) {
    return format_text("%u outputs are workgroups enough to stage x piece by piece", outputs);
  }
  return refuse_unless_whole_units(shape, caps);
}

std::string refuse_unless_narrow(const ProductShape& shape, const gpu::Caps& caps) {
  if (shape.max_rows <= kRowsOfDotProducts && caps.dp4a && weight_format_info(shape.format).quantised()) {
    return format_text("8-bit dot products are as fast for %u rows at most", kRowsOfDotProducts.value);
  }
  return refuse_unless_matrix(shape, caps);
}

PieceViews piece_views(const Weight& weight, const WeightPiece& piece) {
  const WeightLayout layout = weight_layout(weight.format, piece.rows, weight.k);
  const TensorView& whole = piece.buffer;
  const uint64_t plane0 = layout.padded_rows * layout.plane0_row_bytes;
  PieceViews views{.weights = whole.sub(0, plane0), .scales = whole.sub(0, plane0)};
  if (layout.plane1_offset != 0) {
    views.scales = whole.sub(layout.plane1_offset, layout.total_bytes - layout.plane1_offset);
  }
  return views;
}

Outputs outputs_of(const Epilogue& epilogue) {
  if (const auto* store = std::get_if<Store>(&epilogue)) {
    return {.f32 = store->y, .stride = store->y_stride, .column = store->y_column};
  }
  if (const auto* residual = std::get_if<AddResidual>(&epilogue)) {
    return {.f32 = residual->y, .stride = residual->y_stride, .column = residual->y_column, .adds = true};
  }
  if (const auto* residual = std::get_if<AddResidualDeferNorm>(&epilogue)) {
    return {.f32 = residual->y, .adds = true};
  }
  const auto forms = [](const Rows& y) { return Outputs{.f32 = y.f32, .q8 = y.q8, .f16 = y.f16}; };
  if (const auto* gate = std::get_if<Gate>(&epilogue)) return forms(gate->y);
  if (const auto* gate = std::get_if<GateOf>(&epilogue)) return forms(gate->y);
  if (const auto* activate = std::get_if<ActivateSums>(&epilogue)) return forms(activate->y);
  if (const auto* argmax = std::get_if<TileArgmax>(&epilogue)) return {.f32 = argmax->y};
  return {};  // LeaveSums
}

uint64_t piece_bytes(const Weight& weight, const WeightPiece& piece) {
  const WeightLayout layout = weight_layout(weight.format, piece.rows, weight.k);
  return layout.padded_rows * (layout.plane0_row_bytes + layout.plane1_row_bytes);
}

void set_costs(const Product& op, const WeightPiece& piece, Launch& launch, uint32_t splits) {
  const Weight& weight = op.weight;
  const uint32_t rows = piece.rows + op.second_n();
  const uint32_t outputs = op.is_gated() ? rows / 2 : rows;
  const uint32_t passes = splits > 1 ? splits : op.outputs().adds ? 2 : 1;
  launch.fixed_bytes = piece_bytes(weight, piece);
  if (op.second) launch.fixed_bytes += piece_bytes(op.second->weight, op.second->weight.pieces.front());
  launch.bytes =
      (op.row.q8 ? q8_bytes(1, weight.k) : uint64_t{4} * weight.k) + uint64_t{4} * outputs * passes;
  launch.operations = uint64_t{2} * rows * weight.k;
}

XViews x_views(const Product& op, uint32_t max_rows) {
  const uint32_t k = op.weight.k;
  if (!op.row.q8) return {.x = op.x.f32, .scales = op.x.f32};
  const uint64_t plane1 = q8_plane1_offset(max_rows, k);
  return {.x = op.x.q8.sub(0, uint64_t{max_rows} * k),
          .scales = op.x.q8.sub(plane1, q8_bytes(max_rows, k) - plane1)};
}

std::string_view weight_fragment(WeightFormat format, bool q8) {
  const WeightFragments& fragments = weight_fragments(format);
  return q8 ? fragments.dot : fragments.weight;
}

}  // namespace doppler::kernels
