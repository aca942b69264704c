// Pipelines (compiled by the browser, all at once) and bind groups.
#include <algorithm>
#include <chrono>

#include "base/json.h"
#include "gpu/device_web.h"

namespace doppler::gpu {
namespace {

std::string to_host_json(const PipelineDesc& desc) {
  Json layout = Json::array();
  for (const BindKind kind : desc.layout) layout.push_back(static_cast<uint32_t>(kind));
  Json constants = Json::object();
  for (const auto& [name, value] : desc.constants) constants[name] = value;
  return to_text({{"label", desc.label}, {"wgsl", desc.wgsl}, {"layout", layout}, {"constants", constants}});
}

}  // namespace

// A pipeline made before with this description, or UINT32_MAX: pipelines live as long as the device.
PipelineId WebDevice::find_pipeline(const PipelineDesc& desc) const {
  const auto it = std::ranges::find(pipelines_, desc);
  return it == pipelines_.end() ? UINT32_MAX : static_cast<PipelineId>(it - pipelines_.begin());
}

Task<Result<std::vector<PipelineId>>> WebDevice::create_pipelines(
    std::vector<PipelineDesc> descs, std::function<void(uint32_t done, uint32_t total)> progress) {
  DP_CO_CHECK(status());
  const auto start = std::chrono::steady_clock::now();
  const size_t first_new = pipelines_.size();
  for (const PipelineDesc& desc : descs) {
    const auto storage = static_cast<uint32_t>(
        std::ranges::count_if(desc.layout, [](BindKind kind) { return kind != BindKind::kUniform; }));
    if (storage > caps_.max_storage_buffers) {
      co_return fail(ErrorKind::kUnsupported, "Pipeline \"%s\" binds %u storage buffers; %s allows %u.",
                     desc.label.c_str(), storage, caps_.adapter.c_str(), caps_.max_storage_buffers);
    }
    if (find_pipeline(desc) == UINT32_MAX) pipelines_.push_back(desc);
  }
  std::vector<std::unique_ptr<HostCall>> calls;
  for (size_t id = first_new; id < pipelines_.size(); ++id) {
    calls.push_back(std::make_unique<HostCall>());
    const std::string json = to_host_json(pipelines_[id]);
    host_gpu_pipeline(calls.back()->ticket(), static_cast<uint32_t>(id), json.data(),
                      static_cast<uint32_t>(json.size()));
  }
  std::string problem;
  for (size_t i = 0; i < calls.size(); ++i) {
    const HostAnswer answer = co_await calls[i]->answer();
    if (!answer.ok() && problem.empty()) {
      problem =
          format_text("Pipeline \"%s\" does not compile in this %s: %s",
                      pipelines_[first_new + i].label.c_str(), caps_.provider.c_str(), answer.text().c_str());
    }
    if (progress) progress(static_cast<uint32_t>(i + 1), static_cast<uint32_t>(calls.size()));
  }
  if (!problem.empty()) {
    pipelines_.resize(first_new);  // the host overwrites what it has under these numbers
    DP_CO_CHECK(status());
    co_return fail(ErrorKind::kDevice, "%s", problem.c_str());
  }
  counters_.pipelines_created += calls.size();
  counters_.compile_ns +=
      static_cast<uint64_t>((std::chrono::steady_clock::now() - start) / std::chrono::nanoseconds(1));
  std::vector<PipelineId> ids;
  for (const PipelineDesc& desc : descs) ids.push_back(find_pipeline(desc));
  co_return ids;
}

Result<BindGroupId> WebDevice::create_bind_group(PipelineId pipeline, std::span<const BufferSlice> bindings) {
  DP_CHECK(status());
  if (pipeline >= pipelines_.size()) {
    return fail(ErrorKind::kInternal, "Pipeline %u does not exist.", pipeline);
  }
  const PipelineDesc& desc = pipelines_[pipeline];
  const char* label = desc.label.c_str();
  if (bindings.size() != desc.layout.size()) {
    return fail(ErrorKind::kInternal, "Pipeline \"%s\" has %zu bindings; %zu were given.", label,
                desc.layout.size(), bindings.size());
  }
  std::vector<double> numbers;
  for (uint32_t i = 0; i < bindings.size(); ++i) {
    const BufferSlice& slice = bindings[i];
    DP_TRY(const WebBuffer* const buffer, find_buffer(slice.buffer));
    DP_CHECK_WHILE(check_range(*buffer, slice.offset, slice.bytes, "bind"), "binding %u of pipeline \"%s\"",
                   i, label);
    if (slice.offset % caps_.binding_alignment != 0 || slice.bytes == 0) {
      return fail(
          ErrorKind::kInternal,
          "Binding %u of pipeline \"%s\" (%llu bytes at %llu of \"%s\") is empty or does not start at a "
          "multiple of %u.",
          i, label, static_cast<unsigned long long>(slice.bytes),
          static_cast<unsigned long long>(slice.offset), buffer->name.c_str(), caps_.binding_alignment);
    }
    const BufferUse wanted = desc.layout[i] == BindKind::kUniform ? BufferUse::kUniform : BufferUse::kStorage;
    if (buffer->use != wanted) {
      return fail(ErrorKind::kInternal,
                  "Binding %u of pipeline \"%s\" cannot be buffer \"%s\": it was made for another use.", i,
                  label, buffer->name.c_str());
    }
    numbers.insert(numbers.end(), {static_cast<double>(slice.buffer), static_cast<double>(slice.offset),
                                   static_cast<double>(slice.bytes)});
  }
  host_gpu_group(groups_, pipeline, numbers.data(), static_cast<uint32_t>(bindings.size()));
  ++counters_.bind_groups_created;
  return groups_++;
}

}  // namespace doppler::gpu
