// Checks and records scan.
#include "kernels/recurrent/scan.h"

#include <algorithm>

#include "kernels/recurrent/runs.h"
#include "kernels/recurrent/scan.wgsl.h"
#include "kernels/recurrent/scan_chunk.wgsl.h"
#include "kernels/recurrent/variants.h"

namespace doppler::kernels {
namespace {

// A workgroup has 32 columns of a head, a key in 4 parts: 128 numbers of the state an invocation at most. WebGPU's
// least 16 KiB of workgroup memory hold two rows of 512, or eight of 128.
constexpr uint32_t kScanColumns = 32, kSplits = 4, kMostKeyDim = 512;
constexpr uint32_t kTileFloats = 1024, kMostTileRows = 8;

// scan_chunk.wgsl: columns of a workgroup, and parts of the keys.
constexpr uint32_t kScanChunk = 8, kChunkColumns = 16, kChunkParts = 8;

std::string refuse_chunks(const Scan& op, const gpu::Caps& caps) {
  if (op.single_rows) return "each run is of one row";
  if (op.key_dim % 4 != 0 || op.value_dim % 4 != 0) {
    return format_text("keys of %u and values of %u are not whole vec4s", op.key_dim, op.value_dim);
  }
  constexpr uint32_t kScanInvocations = kChunkColumns * kChunkParts;
  // Keys and queries of a chunk. For each invocation: a value, products of eight rows, two vectors, a length and a
  // total. Sums.
  const uint32_t row_quads = (op.key_dim + 4 * kChunkParts - 1) / (4 * kChunkParts) * kChunkParts + 1;
  const uint32_t bytes = 2 * kScanChunk * row_quads * 16 +
                         kScanInvocations * (4 + 8 * kScanChunk + 32 + 8 + 8) + kScanChunk * (16 + 64);
  if (bytes <= caps.max_workgroup_bytes) return "";
  return format_text("it needs %u bytes of workgroup memory, this device has %u", bytes,
                     caps.max_workgroup_bytes);
}

// Two busy cores under lavapipe walk 256 rows of 4 heads of 128 x 128 in 160 to 230 ms row by row, in chunks in 270 to
// 300.
std::string refuse_unless_cpu(const Scan&, const gpu::Caps& caps) {
  if (caps.type == gpu::AdapterType::kCpu) return "";
  return format_text("it is shaped for a CPU and this device is a %s", gpu::adapter_type_name(caps.type));
}

constexpr Variant<Scan> kScanRows[] = {{.name = "scan.cpu", .refuse = refuse_unless_cpu},
                                       {.name = "scan.chunk", .refuse = refuse_chunks},
                                       {"scan.portable"}};

Result<void> check(const Context& ctx, const Scan& op) {
  if (op.n_key_heads == 0 || op.n_heads % op.n_key_heads != 0 || op.key_dim == 0 ||
      op.key_dim > kMostKeyDim || op.value_dim == 0) {
    return fail(
        ErrorKind::kUnsupported,
        "A recurrence of %u heads on %u keys of %u values; allowed are whole multiples, and keys of 1 to "
        "%u.",
        op.n_heads, op.n_key_heads, op.key_dim, kMostKeyDim);
  }
  const uint64_t rows = ctx.max_rows;
  const uint32_t gate_end = std::max(op.gate_column, op.rate_column) + op.n_heads;
  if (gate_end > op.gates_stride) {
    return fail(ErrorKind::kInternal, "The gates of scan end at column %u of %u.", gate_end, op.gates_stride);
  }
  const uint64_t vectors = op.rule == ScanRule::kMamba2 ? 3 : 2;
  DP_CHECK(check_view(op.x, rows * op.x_stride() * sizeof(float), "x of scan"));
  DP_CHECK(check_view(op.gates, rows * op.gates_stride * sizeof(float), "gates of scan"));
  DP_CHECK(check_view(op.vectors, vectors * op.n_heads * sizeof(float), "vectors of scan"));
  DP_CHECK(check_view(op.state, op.state_floats() * state_slots(ctx) * sizeof(float), "state of scan"));
  return check_view(op.y, rows * op.n_heads * op.value_dim * sizeof(float), "y of scan");
}

}  // namespace

std::span<const Variant<Scan>> scan_variants() { return kScanRows; }

Result<void> record(Context& ctx, const Scan& asked) {
  Scan op = asked;
  op.single_rows = op.single_rows || ctx.max_rows == 1;
  DP_CHECK(check(ctx, op));
  const bool is_ssd = op.rule == ScanRule::kMamba2;
  DP_TRY(const auto row, select("scan", scan_variants(), op,
                                format_text("%s %ux%ux%u", is_ssd ? "mamba2" : "gated_delta", op.n_heads,
                                            op.key_dim, op.value_dim),
                                ctx));
  const bool single = op.single_rows, in_chunks = row->refuse == refuse_chunks;
  const uint32_t values = op.n_heads * op.value_dim, keys = op.n_key_heads * op.key_dim;
  Launch launch{.variant = row->name,
                .entry = in_chunks ? "recurrent/scan_chunk" : "recurrent/scan",
                .layout = in_chunks ? wgsl::scan_chunk::kLayout : wgsl::scan::kLayout};
  launch.consts = {u32_const("HEADS", op.n_heads),
                   u32_const("KEY_HEADS", op.n_key_heads),
                   bool_const("IS_TILED", op.is_tiled),
                   u32_const("KEY_DIM", op.key_dim),
                   u32_const("VALUE_DIM", op.value_dim),
                   u32_const("X_STRIDE", op.x_stride()),
                   u32_const("QUERY_COLUMN", is_ssd ? values + keys : 0),
                   u32_const("KEY_COLUMN", is_ssd ? values : keys),
                   u32_const("VALUE_COLUMN", is_ssd ? 0 : 2 * keys),
                   u32_const("GATES_STRIDE", op.gates_stride),
                   u32_const("GATE_COLUMN", op.gate_column)};
  if (!in_chunks) {
    const uint32_t splits = op.key_dim <= 4 ? 1 : kSplits;
    const uint32_t padded = (op.key_dim + 4 * splits - 1) / (4 * splits) * (4 * splits);
    launch.consts.push_back(u32_const("COLUMNS", kScanColumns));
    launch.consts.push_back(u32_const("SPLITS", splits));
    launch.consts.push_back(
        u32_const("TILE_ROWS", single ? 1 : std::clamp(kTileFloats / padded, 1u, kMostTileRows)));
  }
  if (is_ssd) {
    launch.substitutions.emplace_back("recurrent/scan_delta", "recurrent/scan_ssd");
  } else {
    launch.consts.push_back(u32_const("RATE_COLUMN", op.rate_column));
    launch.consts.push_back(u32_const("ACTIVATE", static_cast<uint32_t>(ActivationFn::kSilu)));
  }
  add_runs(launch, ctx);
  launch.bindings = {ctx.state, op.x, op.gates, op.vectors, op.state, op.y};
  const uint32_t columns = in_chunks ? kChunkColumns : kScanColumns;
  launch.grid = {.x = op.n_heads * ((op.value_dim + columns - 1) / columns), .y = most_runs(ctx, single)};
  // Decode plans of many sequences have a run a row.
  if (single && ctx.tables.sequences != 0) {
    launch.grid.rows_axis = 1;
    launch.grid.rows_per_group = 1;
    launch.bytes = 8 * op.state_floats();
  } else {
    launch.fixed_bytes = 8 * op.state_floats();
  }
  launch.bytes += 4ull * (op.x_stride() + values);
  launch.operations = 6 * op.state_floats();
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
