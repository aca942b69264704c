// Records plans. Recording touches no GPU: kernels describe pipelines, bindings and parameters; build() then
// creates everything at once (pipelines compiled concurrently, one uniform buffer for all parameters, scratch
// buffers shared between tensors whose lifetimes do not meet) and returns plans that create nothing any more.
//
//   PlanBuilder b(device.caps());
//   TensorView x = b.scratch("x", rows * hidden * 4);
//   b.begin("decode.greedy", 1);  kernels::record(ctx, RmsNorm{...});  ...  b.end();
//   DP_CO_TRY(BuiltPlans plans, co_await b.build(device, progress));
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "gpu/buffer.h"
#include "gpu/caps.h"
#include "gpu/pipeline.h"
#include "gpu/plan.h"
#include "gpu/scratch_placement.h"

namespace doppler::gpu {

// A range of a buffer that one PlanBuilder knows: a real buffer (weights, cache, state), or scratch that build() will
// place.
struct TensorView {
  uint32_t slot = UINT32_MAX;
  uint64_t offset = 0;  // bytes, a multiple of Caps::binding_alignment when bound
  uint64_t bytes = 0;

  auto operator<=>(const TensorView&) const = default;
  bool valid() const { return slot != UINT32_MAX; }
  TensorView sub(uint64_t from, uint64_t count) const { return {slot, offset + from, count}; }
};

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
  // If rows_per_group != 0, this axis (0 x, 1 y, 2 z) becomes ceil(rows / rows_per_group) at replay.
  uint32_t rows_axis = 0;
  uint32_t rows_per_group = 0;
};

struct DispatchDesc {
  PipelineDesc pipeline;            // equal descriptions share one pipeline
  std::span<const uint8_t> params;  // the Params struct, bound as the layout's kUniform binding; may be empty
  std::span<const TensorView> bindings;  // the other bindings, in order of their numbers
  Grid grid;
  std::string_view op_label;
  uint64_t bytes = 0, fixed_bytes = 0, operations = 0;  // see PlanEntry
  uint32_t keys = 0;
};

// done, total: pipelines compiled so far.
using BuildProgress = std::function<void(uint32_t done, uint32_t total)>;

struct BuiltPlans {
  std::vector<Plan> plans;    // in the order of begin()
  std::vector<Buffer> owned;  // scratch and parameters: keep as long as the plans
  uint64_t scratch_bytes = 0;
  uint64_t unshared_scratch_bytes = 0;  // what scratch would cost without lifetime sharing
};

class PlanBuilder {
 public:
  explicit PlanBuilder(const Caps& caps) : caps_(caps) {}
  const Caps& caps() const { return caps_; }

  TensorView external(const Buffer& buffer);  // the same buffer gives the same slot
  // A scratch tensor lives, in each plan, from its first to its last use in that plan. Its contents do not survive
  // between plans or replays.
  TensorView scratch(std::string_view name, uint64_t bytes);

  void begin(std::string_view name, uint32_t max_rows);
  // From here to the next begin_part() or end() the commands are a part of the plan (PlanPart). With a tag they may be
  // replayed several times in turn: no other part uses their scratch meanwhile, and it keeps its contents.
  void begin_part(uint32_t tag);
  // Errors: limits of the device exceeded (binding count and size, grid), bindings that do not fit the
  // layout, misaligned offsets, one buffer bound both read-only and writable or overlapping itself writably
  // (WebGPU forbids both).
  Result<void> dispatch(const DispatchDesc& desc);
  // Whole multiples of 4 bytes. per_row: `bytes` of both views are for one row, copied times `rows`.
  Result<void> copy(TensorView from, TensorView to, std::string_view op_label, bool per_row = false);
  void end();
  // The commands so far of the plan that is being recorded.
  uint32_t command_count() const { return static_cast<uint32_t>(recordings_.back().commands.size()); }

  // Once, after the last end().
  Task<Result<BuiltPlans>> build(Device& device, BuildProgress progress);

 private:
  struct Slot {
    uint64_t bytes = 0;
    std::string name;
    bool is_external = false;
    uint32_t buffer = 0;  // external: Buffer::id()
  };
  struct Command {
    PlanCommand kind = kDispatch;
    uint32_t pipeline = 0;
    uint32_t params_offset = 0;  // in params_; UINT32_MAX: none
    uint32_t params_bytes = 0;
    std::vector<TensorView> bindings;
    Grid grid;
    bool per_row = false;
    PlanEntry entry;
  };
  struct Recording {
    std::string name;
    uint32_t max_rows = 1;
    std::vector<Command> commands;
    std::vector<PlanPart> parts = {};
  };
  // The contents of a bind group, with scratch placed.
  struct Group {
    uint32_t pipeline = 0;
    std::vector<TensorView> bindings;  // slot: Buffer::id()
    auto operator<=>(const Group&) const = default;
  };

  Result<void> check_layout(const DispatchDesc& desc) const;
  Result<void> check_view(const TensorView& view, const char* what) const;
  Result<void> check_grid(const Grid& grid) const;
  uint32_t find_pipeline(const PipelineDesc& desc);
  uint32_t add_params(std::span<const uint8_t> params);
  ScratchPlacement place() const;
  Plan to_plan(const Recording& recording, std::span<const uint32_t> buffers,
               std::span<const PipelineId> pipelines,
               const std::vector<std::vector<BindGroupId>>& groups) const;

  Caps caps_;
  std::vector<Slot> slots_;
  std::vector<PipelineDesc> pipelines_;
  std::vector<uint8_t> params_;
  std::map<std::string, uint32_t, std::less<>>
      params_index_;  // bytes -> offset: equal parameters are kept once
  std::vector<Recording> recordings_;
  bool recording_ = false;
};

}  // namespace doppler::gpu
