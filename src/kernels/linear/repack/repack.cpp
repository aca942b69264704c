// The table of types that repack reads, and the recording of one dispatch. Read next: repack_codes.wgsl.
#include "kernels/linear/repack/repack.h"

#include <algorithm>

#include "kernels/common/dispatch.h"
#include "kernels/linear/repack/repack_codes.wgsl.h"
#include "kernels/linear/repack/repack_numbers.wgsl.h"
#include "kernels/linear/weight_fragments.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kUnitsOfGroup = 8;  // a whole block of the k-quants: its bytes are read by one workgroup

constexpr RepackRow kRepackRows[] = {
    {{.name = "repack.f16.portable"}, {.from = DType::kF16, .block = "linear/repack/repack_16_bits"}},
    {{.name = "repack.bf16.portable"}, {.from = DType::kBF16, .block = "linear/repack/repack_16_bits"}},
    {{.name = "repack.q2_k.portable"}, {.from = DType::kQ2_K, .block = "linear/repack/repack_q2_k"}},
    {{.name = "repack.mxfp4.portable"}, {.from = DType::kMXFP4, .block = "linear/repack/repack_mxfp4"}},
    {{.name = "repack.q4_0.portable"}, {.from = DType::kQ4_0, .block = "linear/repack/repack_q4_0"}},
    {{.name = "repack.q4_1.portable"}, {.from = DType::kQ4_1, .block = "linear/repack/repack_q4_1"}},
    {{.name = "repack.q4_k.portable"}, {.from = DType::kQ4_K, .block = "linear/repack/repack_q4_k"}},
    {{.name = "repack.q5_0.portable"}, {.from = DType::kQ5_0, .block = "linear/repack/repack_q5_0"}},
    {{.name = "repack.q5_1.portable"}, {.from = DType::kQ5_1, .block = "linear/repack/repack_q5_1"}},
    {{.name = "repack.q5_k.portable"}, {.from = DType::kQ5_K, .block = "linear/repack/repack_q5_k"}},
    {{.name = "repack.q3_k.portable"}, {.from = DType::kQ3_K, .block = "linear/repack/repack_q3_k"}},
    {{.name = "repack.q6_k.portable"}, {.from = DType::kQ6_K, .block = "linear/repack/repack_q6_k"}},
    {{.name = "repack.q8_0.portable"}, {.from = DType::kQ8_0, .block = "linear/repack/repack_q8_0"}},
    {{.name = "repack.iq4_nl.portable"}, {.from = DType::kIQ4_NL, .block = "linear/repack/repack_iq4_nl"}},
};

unsigned long long printed(uint64_t number) { return number; }

}  // namespace

std::span<const RepackRow> repack_variants() { return kRepackRows; }

std::span<const RepackRow> repack_variants(DType from) {
  const auto row = std::ranges::find(kRepackRows, from, &RepackRow::from);
  if (row == std::end(kRepackRows)) return {};
  return {row, 1};
}

std::string repack_operation(DType from) { return std::string("repack.") + dtype_info(from).name; }

bool can_repack(DType from, WeightFormat to) {
  const std::span<const RepackRow> rows = repack_variants(from);
  return !rows.empty() && dtype_info(from).tiles == to;
}

Result<void> record(Context& ctx, const Repack& op) {
  const DTypeInfo& type = dtype_info(op.from);
  const WeightFormatInfo& format = weight_format_info(op.to);
  if (!can_repack(op.from, op.to)) {
    return fail(ErrorKind::kUnsupported, "Weights of type %s cannot be repacked as %s on the GPU.", type.name,
                format.name);
  }
  if (op.k == 0 || op.k % kTileRows != 0 || op.k % type.block_size != 0) {
    return fail(ErrorKind::kInternal, "Row length (%u) of repack is not in whole blocks of %s.", op.k,
                type.name);
  }
  if (op.rows == 0 || op.first_row % kTileRows != 0 || op.first_row > op.piece.rows ||
      op.rows > op.piece.rows - op.first_row) {
    return fail(ErrorKind::kInternal, "Rows %u to %llu of repack are not whole tiles of a piece with %u.",
                op.first_row, printed(uint64_t{op.first_row} + op.rows), op.piece.rows);
  }
  const uint64_t row_bytes = uint64_t{op.k} / type.block_size * type.block_bytes;
  const uint64_t raw_bytes = (op.rows * row_bytes + 3) / 4 * 4;
  const WeightLayout layout = weight_layout(op.to, op.piece.rows, op.k);
  DP_CHECK(check_view(op.raw, raw_bytes, "raw of repack"));
  DP_CHECK(check_view(op.piece.buffer, layout.total_bytes, "piece of repack"));
  DP_TRY(const auto row, select(repack_operation(op.from), repack_variants(op.from), op,
                                format_text("%s to %s", type.name, format.name), ctx));

  const uint32_t units = op.k / kTileRows;
  const uint32_t tiles = (op.rows + kTileRows - 1) / kTileRows;
  const uint64_t tile_bytes = kTileRows * layout.plane0_row_bytes;
  const uint32_t first_tile = op.first_row / kTileRows;
  const TensorView plane0 = op.piece.buffer.sub(first_tile * tile_bytes, tiles * tile_bytes);
  Launch launch{.variant = row->name, .entry = {}, .layout = {}};
  launch.consts = {u32_const("UNITS_PER_GROUP", kUnitsOfGroup)};
  launch.substitutions = {{"linear/repack/block", row->block}};
  launch.grid = {.x = (units + kUnitsOfGroup - 1) / kUnitsOfGroup, .y = tiles};
  launch.bytes = raw_bytes + tiles * kTileRows * (layout.plane0_row_bytes + layout.plane1_row_bytes);
  const wgsl::repack_codes::Params codes{.units = units,
                                         .rows = op.rows,
                                         .row_bytes = static_cast<uint32_t>(row_bytes),
                                         .first_tile = first_tile};
  const wgsl::repack_numbers::Params numbers{
      .units = units, .rows = op.rows, .row_bytes = static_cast<uint32_t>(row_bytes)};
  const std::string_view target = weight_fragments(op.to).repack;
  if (target.empty()) {
    launch.entry = "linear/repack/repack_numbers";
    launch.layout = wgsl::repack_numbers::kLayout;
    launch.params = {reinterpret_cast<const uint8_t*>(&numbers), sizeof(numbers)};
    launch.bindings = {op.raw.sub(0, raw_bytes), plane0};
  } else {
    launch.entry = "linear/repack/repack_codes";
    launch.layout = wgsl::repack_codes::kLayout;
    launch.substitutions.emplace_back("linear/repack/target", target);
    launch.params = {reinterpret_cast<const uint8_t*>(&codes), sizeof(codes)};
    // Plane 1 of a tile need not begin where a binding may.
    launch.bindings = {
        op.raw.sub(0, raw_bytes), plane0,
        op.piece.buffer.sub(layout.plane1_offset, layout.padded_rows * layout.plane1_row_bytes)};
  }
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
