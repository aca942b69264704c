// Checks and records delta_step.
#include "kernels/recurrent/delta_step.h"

#include <algorithm>

#include "kernels/common/dispatch.h"
#include "kernels/recurrent/delta_step.wgsl.h"
#include "kernels/recurrent/output_forms.h"
#include "kernels/recurrent/runs.h"
#include "kernels/recurrent/variants.h"

namespace doppler::kernels {
namespace {

// A head of 128 x 128 in 32 registers an invocation; half as many invocations where workgroup memory is WebGPU's least.
constexpr uint32_t kDeltaStepMostInvocations = 512, kFewInvocations = 256, kDeltaStepMostSplits = 16;
constexpr uint32_t kManyBytes = 32 << 10;
constexpr uint32_t kBuffers = 10;

constexpr Variant<DeltaStep> kDeltaStepRows[] = {{"delta_step.portable"}};

struct DeltaStepShape {
  uint32_t quads = 0, splits = 0, keys = 0, heads_of_key = 0, rows = 1;
  uint32_t workgroup() const { return quads * splits; }
  // Bytes of workgroup memory: two vectors an invocation, two words for 8 bits, inputs, additions to the state,
  // outputs, lengths.
  uint64_t bytes() const {
    return 40ull * workgroup() + 4ull * rows * (2 * keys + heads_of_key * quads * 4) + 32ull * quads +
           16ull * splits + 4;
  }
};

DeltaStepShape shape_of(const Context& ctx, const DeltaStep& step) {
  const Scan& op = step.scan;
  const gpu::Caps& caps = ctx.plan.caps();
  const uint32_t most =
      std::min(caps.max_workgroup_bytes < kManyBytes ? kFewInvocations : kDeltaStepMostInvocations,
               caps.max_invocations);
  DeltaStepShape shape{.quads = op.value_dim / 4,
                       .splits = kDeltaStepMostSplits,
                       .keys = 0,
                       .heads_of_key = op.n_heads / op.n_key_heads,
                       .rows = step.rows};
  while (shape.splits > 1 && (shape.workgroup() > most || shape.splits > op.key_dim)) shape.splits /= 2;
  shape.keys = (op.key_dim + shape.splits - 1) / shape.splits * shape.splits;
  return shape;
}

Result<void> check(const Context& ctx, const DeltaStep& op) {
  const std::string reason = refuse_delta_step(ctx, op);
  if (!reason.empty())
    return fail(ErrorKind::kInternal, "delta_step cannot be recorded: %s.", reason.c_str());
  const Scan& scan = op.scan;
  const uint64_t rows = ctx.max_rows, slots = state_slots(ctx);
  const uint32_t columns = scan.n_heads * scan.value_dim;
  const uint32_t gate_end = std::max(
      {scan.gate_column + scan.n_heads, scan.rate_column + scan.n_heads, op.norm.gate_column + columns});
  if (op.conv.n != scan.x_stride() || op.conv.x_column + op.conv.n > op.conv.x_stride ||
      gate_end > scan.gates_stride) {
    return fail(ErrorKind::kInternal,
                "delta_step of %u channels from column %u of %u, gates to column %u of %u.", op.conv.n,
                op.conv.x_column, op.conv.x_stride, gate_end, scan.gates_stride);
  }
  if (op.rows > ctx.max_rows) {
    return fail(ErrorKind::kInternal, "delta_step of %u rows in a plan of %u.", op.rows, ctx.max_rows);
  }
  if (op.norm.y.f16.valid()) return fail(ErrorKind::kInternal, "delta_step writes no f16 tiles.");
  DP_CHECK(check_view(op.conv.x, rows * op.conv.x_stride * sizeof(float), "x of delta_step"));
  DP_CHECK(check_view(scan.gates, rows * scan.gates_stride * sizeof(float), "gates of delta_step"));
  DP_CHECK(check_view(op.conv.weight, uint64_t{op.conv.kernel} * op.conv.n * sizeof(float),
                      "weight of delta_step"));
  DP_CHECK(check_view(op.conv.state, (op.conv.kernel - 1) * slots * op.conv.n * sizeof(float),
                      "inputs kept of delta_step"));
  DP_CHECK(check_view(scan.vectors, 2ull * scan.n_heads * sizeof(float), "vectors of delta_step"));
  DP_CHECK(check_view(scan.state, scan.state_floats() * slots * sizeof(float), "state of delta_step"));
  DP_CHECK(check_view(op.norm.weight, scan.value_dim * sizeof(float), "norm of delta_step"));
  return check_forms(ctx, op.norm.y, columns, "delta_step");
}

}  // namespace

std::span<const Variant<DeltaStep>> delta_step_variants() { return kDeltaStepRows; }

std::string refuse_delta_step(const Context& ctx, const DeltaStep& op) {
  const Scan& scan = op.scan;
  const gpu::Caps& caps = ctx.plan.caps();
  if (scan.value_dim % kQ8Block != 0) {
    return format_text("heads of %u values are not whole blocks of %u", scan.value_dim, kQ8Block);
  }
  if (op.conv.has_bias || op.conv.gated || op.conv.activation == ActivationFn::kNone ||
      scan.rule != ScanRule::kGatedDelta) {
    return "it is no convolution with an activation before the gated delta rule";
  }
  if (op.norm.group != scan.value_dim || !op.norm.shares_weight || op.norm.gate_first) {
    return "the norm is not one of heads with a gate after it";
  }
  if (op.norm.gates != scan.gates || op.norm.gates_stride != scan.gates_stride) {
    return "the gates do not lie beside one another";
  }
  if (op.rows == 0 || (op.rows > 1 && (ctx.tables.sequences != 0 || op.rows > state_slots(ctx)))) {
    return format_text("runs of %u rows; allowed is 1, and in plans of one sequence that draft 2", op.rows);
  }
  if (caps.max_storage_buffers < kBuffers) {
    return format_text("it binds %u storage buffers, this device allows %u", kBuffers,
                       caps.max_storage_buffers);
  }
  const DeltaStepShape shape = shape_of(ctx, op);
  if (shape.workgroup() > caps.max_invocations) {
    return format_text("heads of %u values take %u invocations, this device allows %u", scan.value_dim,
                       shape.workgroup(), caps.max_invocations);
  }
  if (shape.bytes() > caps.max_workgroup_bytes) {
    return format_text("it needs %llu bytes of workgroup memory, this device has %u",
                       static_cast<unsigned long long>(shape.bytes()), caps.max_workgroup_bytes);
  }
  return "";
}

Result<void> record(Context& ctx, const DeltaStep& op) {
  DP_CHECK(check(ctx, op));
  const Scan& scan = op.scan;
  const uint32_t columns = scan.n_heads * scan.value_dim;
  DP_TRY(const auto row, select("delta_step", delta_step_variants(), op,
                                format_text("%u on %u heads of %ux%u", scan.n_heads, scan.n_key_heads,
                                            scan.key_dim, scan.value_dim),
                                ctx));
  const DeltaStepShape shape = shape_of(ctx, op);
  Launch launch{.variant = row->name, .entry = "recurrent/delta_step", .layout = wgsl::delta_step::kLayout};
  launch.consts = {u32_const("WORKGROUP", shape.workgroup()),
                   u32_const("ROWS", op.rows),
                   u32_const("SPLITS", shape.splits),
                   u32_const("CHANNELS", op.conv.n),
                   u32_const("KERNEL", op.conv.kernel),
                   u32_const("X_STRIDE", op.conv.x_stride),
                   u32_const("X_COLUMN", op.conv.x_column),
                   bool_const("IS_GATED", false),
                   bool_const("IS_SINGLE", true),
                   bool_const("HAS_BIAS", false),
                   bool_const("HAS_ACTIVATION", true),
                   u32_const("ACTIVATE", static_cast<uint32_t>(op.conv.activation)),
                   u32_const("HEADS", scan.n_heads),
                   u32_const("KEY_HEADS", scan.n_key_heads),
                   bool_const("IS_TILED", scan.is_tiled),
                   u32_const("KEY_DIM", scan.key_dim),
                   u32_const("VALUE_DIM", scan.value_dim),
                   u32_const("GATES_STRIDE", scan.gates_stride),
                   u32_const("GATE_COLUMN", scan.gate_column),
                   u32_const("RATE_COLUMN", scan.rate_column),
                   u32_const("OUTPUT_COLUMN", op.norm.gate_column),
                   f32_const("EPS", op.norm.eps),
                   bool_const("HAS_F32", op.norm.y.f32.valid()),
                   bool_const("HAS_Q8", op.norm.y.q8.valid()),
                   u32_const("Q8_PLANE1", q8_plane1_offset(ctx.max_rows, columns) / 4)};
  const Rows& y = op.norm.y;
  launch.bindings = {ctx.state,
                     op.conv.x,
                     scan.gates,
                     op.conv.weight,
                     op.conv.state,
                     scan.vectors,
                     scan.state,
                     op.norm.weight,
                     y.f32.valid() ? y.f32 : unused_binding(ctx),
                     y.q8.valid() ? y.q8 : unused_binding(ctx)};
  add_runs(launch, ctx);
  launch.grid = {.x = scan.n_key_heads};
  const uint64_t states = 4 * (1 + op.rows) * (scan.state_floats() + (op.conv.kernel - 1ull) * op.conv.n);
  launch.fixed_bytes = 4ull * op.conv.kernel * op.conv.n;
  if (ctx.tables.sequences != 0) {
    launch.grid.rows_axis = 1;
    launch.grid.rows_per_group = 1;
    launch.bytes = states;
  } else {
    launch.fixed_bytes += states;
  }
  launch.bytes += 4ull * (op.conv.n + columns) + form_bytes(y, columns);
  launch.operations = 6 * scan.state_floats() + 2ull * op.conv.n * op.conv.kernel;
  return dispatch(ctx, launch);
}

}  // namespace doppler::kernels
