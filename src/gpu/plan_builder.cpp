// Recording of plans and its checks; see plan_builder.h. build(), which makes plans of the recordings, is in
// plan_build.cpp.
#include "gpu/plan_builder.h"

#include <algorithm>
#include <cstring>

namespace doppler::gpu {
namespace {

constexpr uint64_t kWordBytes = 4;
constexpr uint32_t kMaxRowsPerGroup = (1u << 28) - 1;  // what a plan's seventh word can hold

bool writable(BindKind kind) { return kind == BindKind::kReadWrite; }

std::string text_of(std::string_view text) { return std::string(text); }

}  // namespace

TensorView PlanBuilder::external(const Buffer& buffer) {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].is_external && slots_[slot].buffer == buffer.id()) return {slot, 0, buffer.bytes()};
  }
  slots_.push_back({.bytes = buffer.bytes(),
                    .name = format_text("buffer %u", buffer.id()),
                    .is_external = true,
                    .buffer = buffer.id()});
  return {static_cast<uint32_t>(slots_.size() - 1), 0, buffer.bytes()};
}

TensorView PlanBuilder::scratch(std::string_view name, uint64_t bytes) {
  const uint64_t whole = (bytes + kWordBytes - 1) / kWordBytes * kWordBytes;
  slots_.push_back({.bytes = whole, .name = text_of(name)});
  return {static_cast<uint32_t>(slots_.size() - 1), 0, whole};
}

void PlanBuilder::begin(std::string_view name, uint32_t max_rows) {
  recordings_.push_back({.name = text_of(name), .max_rows = std::max(max_rows, 1u), .commands = {}});
  recording_ = true;
}

void PlanBuilder::begin_part(uint32_t tag) {
  Recording& recording = recordings_.back();
  if (recording.parts.empty()) recording.parts.push_back({});
  recording.parts.push_back({.first = static_cast<uint32_t>(recording.commands.size()), .tag = tag});
}

void PlanBuilder::end() { recording_ = false; }

Result<void> PlanBuilder::check_view(const TensorView& view, const char* what) const {
  if (view.slot >= slots_.size()) return fail(ErrorKind::kInternal, "The %s has no tensor.", what);
  const Slot& slot = slots_[view.slot];
  if (view.bytes == 0 || view.bytes % kWordBytes != 0 || view.offset % kWordBytes != 0) {
    return fail(ErrorKind::kInternal,
                "The %s (%llu bytes at %llu of \"%s\") is not in whole words of 4 bytes.", what,
                static_cast<unsigned long long>(view.bytes), static_cast<unsigned long long>(view.offset),
                slot.name.c_str());
  }
  const uint64_t allocated = (slot.bytes + kWordBytes - 1) / kWordBytes * kWordBytes;
  if (view.offset > allocated || view.bytes > allocated - view.offset) {
    return fail(ErrorKind::kInternal, "The %s (%llu bytes at %llu) is not inside \"%s\" (%llu bytes).", what,
                static_cast<unsigned long long>(view.bytes), static_cast<unsigned long long>(view.offset),
                slot.name.c_str(), static_cast<unsigned long long>(slot.bytes));
  }
  return {};
}

Result<void> PlanBuilder::check_layout(const DispatchDesc& desc) const {
  const std::vector<BindKind>& layout = desc.pipeline.layout;
  const auto uniforms = static_cast<size_t>(std::count(layout.begin(), layout.end(), BindKind::kUniform));
  if (uniforms > 1 || (uniforms == 1) == desc.params.empty()) {
    return fail(ErrorKind::kInternal,
                "The layout has %zu uniform bindings and the call %zu bytes of parameters.", uniforms,
                desc.params.size());
  }
  const size_t storage = layout.size() - uniforms;
  if (desc.bindings.size() != storage) {
    return fail(ErrorKind::kInternal, "The layout has %zu storage bindings; %zu were given.", storage,
                desc.bindings.size());
  }
  if (storage > caps_.max_storage_buffers) {
    return fail(ErrorKind::kUnsupported, "It binds %zu storage buffers; this device allows %u.", storage,
                caps_.max_storage_buffers);
  }
  std::vector<BindKind> kinds;
  std::copy_if(layout.begin(), layout.end(), std::back_inserter(kinds),
               [](BindKind kind) { return kind != BindKind::kUniform; });
  for (size_t i = 0; i < storage; ++i) {
    const TensorView& view = desc.bindings[i];
    DP_CHECK(check_view(view, format_text("storage binding %zu", i).c_str()));
    const char* name = slots_[view.slot].name.c_str();
    if (view.offset % caps_.binding_alignment != 0) {
      return fail(ErrorKind::kInternal, "Storage binding %zu starts at %llu of \"%s\", not a multiple of %u.",
                  i, static_cast<unsigned long long>(view.offset), name, caps_.binding_alignment);
    }
    if (view.bytes > caps_.max_binding_bytes) {
      return fail(ErrorKind::kUnsupported,
                  "Storage binding %zu (\"%s\", %s) is larger than this device binds (%s).", i, name,
                  format_bytes(view.bytes).c_str(), format_bytes(caps_.max_binding_bytes).c_str());
    }
    for (size_t j = 0; j < i; ++j) {
      const TensorView& other = desc.bindings[j];
      if (other.slot != view.slot) continue;
      const bool overlap =
          other.offset < view.offset + view.bytes && view.offset < other.offset + other.bytes;
      if (writable(kinds[i]) != writable(kinds[j]) || (writable(kinds[i]) && overlap)) {
        return fail(ErrorKind::kInternal, "Storage bindings %zu and %zu are both \"%s\", and one is written.",
                    j, i, name);
      }
    }
  }
  return {};
}

Result<void> PlanBuilder::check_grid(const Grid& grid) const {
  uint32_t axes[3] = {grid.x, grid.y, grid.z};
  if (grid.rows_per_group != 0) {
    if (grid.rows_axis > 2 || grid.rows_per_group > kMaxRowsPerGroup) {
      return fail(ErrorKind::kInternal,
                  "Rows axis %u (allowed: 0 to 2) or %u rows per group (up to %u) is wrong.", grid.rows_axis,
                  grid.rows_per_group, kMaxRowsPerGroup);
    }
    axes[grid.rows_axis] = (recordings_.back().max_rows + grid.rows_per_group - 1) / grid.rows_per_group;
  }
  const uint32_t largest = std::max({axes[0], axes[1], axes[2]});
  if (largest > caps_.max_workgroups || std::min({axes[0], axes[1], axes[2]}) == 0) {
    return fail(ErrorKind::kUnsupported,
                "A grid of %ux%ux%u workgroups is not possible; each must be 1 to %u.", axes[0], axes[1],
                axes[2], caps_.max_workgroups);
  }
  return {};
}

uint32_t PlanBuilder::find_pipeline(const PipelineDesc& desc) {
  const auto found = std::find(pipelines_.begin(), pipelines_.end(), desc);
  if (found != pipelines_.end()) return static_cast<uint32_t>(found - pipelines_.begin());
  pipelines_.push_back(desc);
  return static_cast<uint32_t>(pipelines_.size() - 1);
}

uint32_t PlanBuilder::add_params(std::span<const uint8_t> params) {
  std::string bytes(params.begin(), params.end());
  const auto offset = static_cast<uint32_t>(params_.size());
  const auto [entry, added] = params_index_.emplace(std::move(bytes), offset);
  if (!added) return entry->second;
  const size_t step = caps_.binding_alignment;
  params_.resize(offset + (params.size() + step - 1) / step * step);
  std::memcpy(params_.data() + offset, params.data(), params.size());
  return offset;
}

Result<void> PlanBuilder::dispatch(const DispatchDesc& desc) {
  if (!recording_) return fail(ErrorKind::kInternal, "A dispatch was recorded outside begin() and end().");
  const auto where = [&] {
    return format_text("recording %s (%s) in plan \"%s\"", desc.pipeline.label.c_str(),
                       text_of(desc.op_label).c_str(), recordings_.back().name.c_str());
  };
  DP_CHECK_WHILE(check_layout(desc), "%s", where().c_str());
  DP_CHECK_WHILE(check_grid(desc.grid), "%s", where().c_str());
  Command command = {
      .kind = kDispatch, .pipeline = find_pipeline(desc.pipeline), .params_offset = UINT32_MAX};
  if (!desc.params.empty()) {
    command.params_offset = add_params(desc.params);
    command.params_bytes =
        static_cast<uint32_t>((desc.params.size() + kWordBytes - 1) / kWordBytes * kWordBytes);
  }
  command.bindings.assign(desc.bindings.begin(), desc.bindings.end());
  command.grid = desc.grid;
  command.entry = {.name = desc.pipeline.label,
                   .op_label = text_of(desc.op_label),
                   .bytes = desc.bytes,
                   .fixed_bytes = desc.fixed_bytes,
                   .operations = desc.operations,
                   .keys = desc.keys};
  recordings_.back().commands.push_back(std::move(command));
  return {};
}

Result<void> PlanBuilder::copy(TensorView from, TensorView to, std::string_view op_label, bool per_row) {
  if (!recording_) return fail(ErrorKind::kInternal, "A copy was recorded outside begin() and end().");
  Recording& recording = recordings_.back();
  const auto check = [&]() -> Result<void> {
    if (from.bytes != to.bytes) {
      return fail(ErrorKind::kInternal, "The source has %llu bytes and the target %llu.",
                  static_cast<unsigned long long>(from.bytes), static_cast<unsigned long long>(to.bytes));
    }
    const uint64_t rows = per_row ? recording.max_rows : 1;
    DP_CHECK(check_view({from.slot, from.offset, from.bytes * rows}, "source"));
    DP_CHECK(check_view({to.slot, to.offset, to.bytes * rows}, "target"));
    if (from.slot == to.slot) {
      return fail(ErrorKind::kInternal,
                  "The source and the target are both in \"%s\"; WebGPU copies between buffers.",
                  slots_[from.slot].name.c_str());
    }
    return {};
  };
  DP_CHECK_WHILE(check(), "recording copy %s in plan \"%s\"", text_of(op_label).c_str(),
                 recording.name.c_str());
  Command command = {.kind = kCopy, .per_row = per_row};
  command.bindings = {from, to};
  command.entry = {.name = "copy", .op_label = text_of(op_label), .bytes = 2 * from.bytes};
  recording.commands.push_back(std::move(command));
  return {};
}

}  // namespace doppler::gpu
