// Turns recordings into plans: pipelines, one buffer of parameters, shared scratch, bind groups, words.
#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "gpu/device.h"
#include "gpu/plan_builder.h"

namespace doppler::gpu {
namespace {

constexpr uint32_t kPlanAxisShift = 28;  // plan.h: axis << 28 | rows_per_group
constexpr uint32_t kPlanBuildWordBytes = 4;

uint32_t to_words(uint64_t bytes) { return static_cast<uint32_t>(bytes / kPlanBuildWordBytes); }

// A tensor that a part uses, if that part is replayed several times, lives through the whole part.
void keep_in_parts(std::span<const PlanPart> parts, uint32_t plan, uint32_t commands,
                   std::vector<ScratchTensor>& tensors) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const uint32_t first = parts[i].first, end = i + 1 < parts.size() ? parts[i + 1].first : commands;
    if (parts[i].tag == 0 || first == end) continue;
    for (ScratchTensor& tensor : tensors) {
      if (tensor.lives.empty() || tensor.lives.back().plan != plan) continue;
      Lifetime& life = tensor.lives.back();
      if (life.last < first || life.first >= end) continue;
      life.first = std::min(life.first, first);
      life.last = std::max(life.last, end - 1);
    }
  }
}

}  // namespace

ScratchPlacement PlanBuilder::place() const {
  std::vector<ScratchTensor> tensors(slots_.size());
  for (size_t slot = 0; slot < slots_.size(); ++slot) tensors[slot].bytes = slots_[slot].bytes;
  for (uint32_t plan = 0; plan < recordings_.size(); ++plan) {
    const std::vector<Command>& commands = recordings_[plan].commands;
    for (uint32_t at = 0; at < commands.size(); ++at) {
      for (const TensorView& view : commands[at].bindings) {
        if (slots_[view.slot].is_external) continue;
        std::vector<Lifetime>& lives = tensors[view.slot].lives;
        if (lives.empty() || lives.back().plan != plan) lives.push_back({plan, at, at});
        lives.back().last = at;
      }
    }
    keep_in_parts(recordings_[plan].parts, plan, static_cast<uint32_t>(commands.size()), tensors);
  }
  return place_scratch(tensors);
}

Plan PlanBuilder::to_plan(const Recording& recording, std::span<const uint32_t> buffers,
                          std::span<const PipelineId> pipelines,
                          const std::vector<std::vector<BindGroupId>>& groups) const {
  Plan plan = {.name = recording.name,
               .max_rows = recording.max_rows,
               .words = {},
               .entries = {},
               .parts = recording.parts};
  const std::vector<BindGroupId>& own_groups = groups[static_cast<size_t>(&recording - recordings_.data())];
  for (size_t at = 0; at < recording.commands.size(); ++at) {
    const Command& command = recording.commands[at];
    if (command.kind == kCopy) {
      const TensorView& from = command.bindings[0];
      const TensorView& to = command.bindings[1];
      plan.words.insert(plan.words.end(),
                        {kCopy, buffers[from.slot], to_words(from.offset), buffers[to.slot],
                         to_words(to.offset), to_words(from.bytes), 0, command.per_row ? 1u : 0u});
    } else {
      const Grid& grid = command.grid;
      const uint32_t rows =
          grid.rows_per_group == 0 ? 0 : grid.rows_axis << kPlanAxisShift | grid.rows_per_group;
      plan.words.insert(plan.words.end(), {kDispatch, pipelines[command.pipeline], own_groups[at], grid.x,
                                           grid.y, grid.z, rows, 0});
    }
    PlanEntry& entry = plan.entries.emplace_back(command.entry);
    for (const TensorView& view : command.bindings) {
      entry.tensors.push_back(slots_[view.slot].is_external ? kNotScratch : view.slot);
    }
  }
  return plan;
}

Task<Result<BuiltPlans>> PlanBuilder::build(Device& device, BuildProgress progress) {
  BuiltPlans built;
  auto compiling = device.create_pipelines(pipelines_, std::move(progress));
  DP_CO_TRY(const std::vector<PipelineId> pipelines, co_await std::move(compiling));

  const ScratchPlacement placement = place();
  std::vector<uint32_t> physical;  // buffer ids
  for (size_t i = 0; i < placement.sizes.size(); ++i) {
    BufferDesc desc = {.name = format_text("scratch %zu", i), .bytes = placement.sizes[i]};
    auto making = device.create_buffer(std::move(desc));
    DP_CO_TRY(Buffer buffer, co_await std::move(making));
    built.scratch_bytes += placement.sizes[i];
    physical.push_back(buffer.id());
    built.owned.push_back(std::move(buffer));
  }
  std::vector<uint32_t> buffers(slots_.size(), UINT32_MAX);  // slot -> buffer id
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].is_external) {
      buffers[slot] = slots_[slot].buffer;
    } else if (placement.physical[slot] != UINT32_MAX) {
      buffers[slot] = physical[placement.physical[slot]];
      built.unshared_scratch_bytes += slots_[slot].bytes;
    }
  }
  uint32_t params_buffer = UINT32_MAX;
  if (!params_.empty()) {
    BufferDesc desc = {.name = "parameters", .bytes = params_.size(), .use = BufferUse::kUniform};
    auto making = device.create_buffer(std::move(desc));
    DP_CO_TRY(Buffer buffer, co_await std::move(making));
    DP_CO_CHECK(device.write(buffer, 0, params_));
    params_buffer = buffer.id();
    built.owned.push_back(std::move(buffer));
  }

  std::map<Group, BindGroupId> known;  // equal groups of all plans are made once
  std::vector<std::vector<BindGroupId>> groups(recordings_.size());
  for (size_t plan = 0; plan < recordings_.size(); ++plan) {
    for (const Command& command : recordings_[plan].commands) {
      groups[plan].push_back(UINT32_MAX);
      if (command.kind != kDispatch) continue;
      Group group = {.pipeline = command.pipeline, .bindings = {}};
      std::vector<BufferSlice> slices;
      auto next = command.bindings.begin();
      for (const BindKind kind : pipelines_[command.pipeline].layout) {
        const bool uniform = kind == BindKind::kUniform;
        const TensorView view = uniform
                                    ? TensorView{params_buffer, command.params_offset, command.params_bytes}
                                    : TensorView{buffers[next->slot], next->offset, next->bytes};
        if (!uniform) ++next;
        group.bindings.push_back(view);
        slices.push_back({view.slot, view.offset, view.bytes});
      }
      const auto [entry, added] = known.emplace(std::move(group), 0);
      if (added) {
        DP_CO_TRY(entry->second, device.create_bind_group(pipelines[command.pipeline], slices));
      }
      groups[plan].back() = entry->second;
    }
  }
  for (const Recording& recording : recordings_) {
    built.plans.push_back(to_plan(recording, buffers, pipelines, groups));
  }
  co_return built;
}

}  // namespace doppler::gpu
