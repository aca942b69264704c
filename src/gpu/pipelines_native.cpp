// Layouts, pipelines (compiled by threads) and bind groups of the native device.
#include <algorithm>
#include <functional>
#include <utility>

#include "base/log.h"
#include "gpu/device_native.h"

namespace doppler::gpu {
namespace {

constexpr unsigned kMaxCompileThreads = 16;

WGPUBufferBindingType binding_type(BindKind kind) {
  switch (kind) {
    case BindKind::kUniform:
      return WGPUBufferBindingType_Uniform;
    case BindKind::kRead:
      return WGPUBufferBindingType_ReadOnlyStorage;
    case BindKind::kReadWrite:
      return WGPUBufferBindingType_Storage;
  }
  return WGPUBufferBindingType_Undefined;
}

size_t hash_of(const PipelineDesc& desc) {
  size_t hash = std::hash<std::string>()(desc.wgsl) ^ std::hash<std::string>()(desc.label);
  for (const auto& [name, value] : desc.constants) hash = hash * 31 + std::hash<double>()(value);
  return hash;
}

WGPUShaderModule create_module(const Provider& api, WGPUDevice device, const PipelineDesc& desc) {
  WGPUShaderSourceWGSL source = WGPU_SHADER_SOURCE_WGSL_INIT;
  source.code = to_view(desc.wgsl);
  WGPUShaderModuleDescriptor descriptor = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
  descriptor.nextInChain = &source.chain;
  descriptor.label = to_view(desc.label);
  if (desc.trusted && api.DeviceCreateShaderModuleTrusted) {
    return api.DeviceCreateShaderModuleTrusted(device, &descriptor, WGPUShaderRuntimeChecks_None);
  }
  return api.DeviceCreateShaderModule(device, &descriptor);
}

void compile(const Provider& api, WGPUDevice device, CompileJob::Item& item) {
  const ErrorTrap trap;
  WGPUShaderModule module = create_module(api, device, item.desc);
  if (!trap.caught()) {
    std::vector<WGPUConstantEntry> constants;
    for (const auto& [name, value] : item.desc.constants) {
      WGPUConstantEntry entry = WGPU_CONSTANT_ENTRY_INIT;
      entry.key = to_view(name);
      entry.value = value;
      constants.push_back(entry);
    }
    WGPUComputePipelineDescriptor descriptor = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
    descriptor.label = to_view(item.desc.label);
    descriptor.layout = item.layout_handle;
    descriptor.compute.module = module;
    descriptor.compute.entryPoint = to_view("main");
    descriptor.compute.constantCount = constants.size();
    descriptor.compute.constants = constants.data();
    item.pipeline = api.DeviceCreateComputePipeline(device, &descriptor);
  }
  if (module) api.ShaderModuleRelease(module);
  if (!trap.caught() && item.pipeline) return;
  item.problem = trap.caught() ? trap.message() : "the provider gave no reason";
  if (item.pipeline) api.ComputePipelineRelease(std::exchange(item.pipeline, nullptr));
}

}  // namespace

CompileJob::~CompileJob() {
  next.store(static_cast<uint32_t>(items.size()));
  for (std::thread& thread : threads) thread.join();
  for (const Item& item : items) {
    if (item.pipeline) provider->ComputePipelineRelease(item.pipeline);
  }
}

void CompileJob::work() {
  for (uint32_t index = next.fetch_add(1); index < items.size(); index = next.fetch_add(1)) {
    compile(*provider, device, items[index]);
    const std::lock_guard lock(mutex);
    end = std::chrono::steady_clock::now();
    done.fetch_add(1);
    changed.notify_all();
  }
}

// Reports progress and completes jobs, on the owner's thread. True if anything happened.
bool NativeDevice::finish_compile_jobs() {
  bool any = false;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const std::shared_ptr<CompileJob> job = jobs_[i];
    const uint32_t done = job->done.load();
    const auto total = static_cast<uint32_t>(job->items.size());
    if (done > job->reported) {
      job->reported = done;
      any = true;
      if (job->progress) job->progress(done, total);
    }
    if (done < total) continue;
    jobs_.erase(jobs_.begin() + static_cast<ptrdiff_t>(i));
    job->completion.complete(true);
    return true;
  }
  return any;
}

Result<uint32_t> NativeDevice::find_layout(const std::vector<BindKind>& kinds) {
  for (uint32_t i = 0; i < layouts_.size(); ++i) {
    if (layouts_[i].kinds == kinds) return i;
  }
  const auto storage = static_cast<uint32_t>(
      std::count_if(kinds.begin(), kinds.end(), [](BindKind kind) { return kind != BindKind::kUniform; }));
  if (storage > caps_.max_storage_buffers) {
    return fail(ErrorKind::kUnsupported, "It binds %u storage buffers; %s allows %u.", storage,
                caps_.adapter.c_str(), caps_.max_storage_buffers);
  }
  std::vector<WGPUBindGroupLayoutEntry> entries;
  for (uint32_t i = 0; i < kinds.size(); ++i) {
    WGPUBindGroupLayoutEntry entry = WGPU_BIND_GROUP_LAYOUT_ENTRY_INIT;
    entry.binding = i;
    entry.visibility = WGPUShaderStage_Compute;
    entry.buffer.type = binding_type(kinds[i]);
    entries.push_back(entry);
  }
  const ErrorTrap trap;
  NativeLayout layout = {.kinds = kinds};
  WGPUBindGroupLayoutDescriptor group = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
  group.entryCount = entries.size();
  group.entries = entries.data();
  layout.group = api().DeviceCreateBindGroupLayout(device_, &group);
  WGPUPipelineLayoutDescriptor pipeline = WGPU_PIPELINE_LAYOUT_DESCRIPTOR_INIT;
  pipeline.bindGroupLayoutCount = 1;
  pipeline.bindGroupLayouts = &layout.group;
  layout.pipeline = api().DeviceCreatePipelineLayout(device_, &pipeline);
  if (trap.caught()) return fail(ErrorKind::kDevice, "Its layout was refused: %s", trap.message().c_str());
  layouts_.push_back(std::move(layout));
  return static_cast<uint32_t>(layouts_.size() - 1);
}

// A pipeline made before with this description, or UINT32_MAX: pipelines live as long as the device.
PipelineId NativeDevice::find_pipeline(const PipelineDesc& desc) const {
  const auto [first, last] = pipeline_index_.equal_range(hash_of(desc));
  for (auto it = first; it != last; ++it) {
    if (pipelines_[it->second].desc == desc) return it->second;
  }
  return UINT32_MAX;
}

// One item for every description that is new, each once.
Result<std::shared_ptr<CompileJob>> NativeDevice::plan_compile_job(const std::vector<PipelineDesc>& descs) {
  auto job = std::make_shared<CompileJob>();
  job->provider = &api();
  job->device = device_;
  for (const PipelineDesc& desc : descs) {
    const auto same = [&](const CompileJob::Item& item) { return item.desc == desc; };
    if (find_pipeline(desc) != UINT32_MAX || std::any_of(job->items.begin(), job->items.end(), same))
      continue;
    auto layout = find_layout(desc.layout);
    if (!layout) {
      return forward(
          std::move(layout).error().add_while(format_text("making pipeline \"%s\"", desc.label.c_str())));
    }
    if (api().is_dawn && !bounds_checks_ && !desc.trusted && !std::exchange(told_unchecked_, true)) {
      log(LogLevel::kInfo,
          "%s is not marked trusted, but Dawn runs it without bounds checks like every pipeline",
          desc.label.c_str());
    }
    job->items.push_back({.desc = desc, .layout = *layout, .layout_handle = layouts_[*layout].pipeline});
  }
  return job;
}

// Moves the compiled pipelines into the device, or fails with the first problem.
Result<void> NativeDevice::adopt(CompileJob& job) {
  if (errors_.lost()) return errors_.take();
  for (const CompileJob::Item& item : job.items) {
    if (item.problem.empty()) continue;
    return fail(ErrorKind::kDevice, "Pipeline \"%s\" does not compile under %s: %s", item.desc.label.c_str(),
                caps_.provider.c_str(), item.problem.c_str());
  }
  for (CompileJob::Item& item : job.items) {
    pipeline_index_.emplace(hash_of(item.desc), static_cast<PipelineId>(pipelines_.size()));
    pipelines_.push_back({.desc = std::move(item.desc),
                          .handle = std::exchange(item.pipeline, nullptr),
                          .layout = item.layout});
    ++counters_.pipelines_created;
  }
  counters_.compile_ns += static_cast<uint64_t>((job.end - job.start) / std::chrono::nanoseconds(1));
  count_blobs();
  return {};
}

Task<Result<std::vector<PipelineId>>> NativeDevice::create_pipelines(
    std::vector<PipelineDesc> descs, std::function<void(uint32_t done, uint32_t total)> progress) {
  DP_CO_CHECK(status());
  if (bounds_checks_) {
    for (PipelineDesc& desc : descs) desc.trusted = false;
  }
  DP_CO_TRY(const std::shared_ptr<CompileJob> job, plan_compile_job(descs));
  if (!job->items.empty()) {
    job->progress = std::move(progress);
    const size_t cores = std::clamp(std::thread::hardware_concurrency(), 1u, kMaxCompileThreads);
    const Completion<bool> completion = job->completion;
    jobs_.push_back(job);
    for (size_t i = 0; i < std::min(cores, job->items.size()); ++i) {
      job->threads.emplace_back([raw = job.get()] { raw->work(); });
    }
    co_await completion;
    DP_CO_CHECK(adopt(*job));
  }
  std::vector<PipelineId> ids;
  for (const PipelineDesc& desc : descs) ids.push_back(find_pipeline(desc));
  co_return ids;
}

Result<BindGroupId> NativeDevice::create_bind_group(PipelineId pipeline,
                                                    std::span<const BufferSlice> bindings) {
  DP_CHECK(status());
  if (pipeline >= pipelines_.size()) {
    return fail(ErrorKind::kInternal, "Pipeline %u does not exist.", pipeline);
  }
  const NativeLayout& layout = layouts_[pipelines_[pipeline].layout];
  const char* label = pipelines_[pipeline].desc.label.c_str();
  if (bindings.size() != layout.kinds.size()) {
    return fail(ErrorKind::kInternal, "Pipeline \"%s\" has %zu bindings; %zu were given.", label,
                layout.kinds.size(), bindings.size());
  }
  std::vector<WGPUBindGroupEntry> entries;
  for (uint32_t i = 0; i < bindings.size(); ++i) {
    DP_TRY(const NativeBuffer* const buffer, find_buffer(bindings[i].buffer));
    DP_CHECK_WHILE(check_range(*buffer, bindings[i].offset, bindings[i].bytes, "bind"),
                   "binding %u of pipeline \"%s\"", i, label);
    if (bindings[i].offset % caps_.binding_alignment != 0 || bindings[i].bytes == 0) {
      return fail(
          ErrorKind::kInternal,
          "Binding %u of pipeline \"%s\" (%llu bytes at %llu of \"%s\") is empty or does not start at a "
          "multiple of %u.",
          i, label, static_cast<unsigned long long>(bindings[i].bytes),
          static_cast<unsigned long long>(bindings[i].offset), buffer->name.c_str(), caps_.binding_alignment);
    }
    const bool readback = buffer->use == BufferUse::kReadback;
    const bool uniform = buffer->use == BufferUse::kUniform;
    if (readback || uniform != (layout.kinds[i] == BindKind::kUniform)) {
      return fail(ErrorKind::kInternal,
                  "Binding %u of pipeline \"%s\" cannot be buffer \"%s\": it is a %s buffer.", i, label,
                  buffer->name.c_str(),
                  readback  ? "readback"
                  : uniform ? "uniform"
                            : "storage");
    }
    WGPUBindGroupEntry entry = WGPU_BIND_GROUP_ENTRY_INIT;
    entry.binding = i;
    entry.buffer = buffer->handle;
    entry.offset = bindings[i].offset;
    entry.size = bindings[i].bytes;
    entries.push_back(entry);
  }
  WGPUBindGroupDescriptor descriptor = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  descriptor.label = to_view(pipelines_[pipeline].desc.label);
  descriptor.layout = layout.group;
  descriptor.entryCount = entries.size();
  descriptor.entries = entries.data();
  const ErrorTrap trap;
  WGPUBindGroup handle = api().DeviceCreateBindGroup(device_, &descriptor);
  if (trap.caught()) {
    if (handle) api().BindGroupRelease(handle);
    if (errors_.lost()) return forward(std::move(errors_.take()).error());
    return fail(ErrorKind::kDevice, "The bindings of pipeline \"%s\" were refused: %s", label,
                trap.message().c_str());
  }
  const auto id = static_cast<BindGroupId>(groups_.size());
  groups_.push_back(handle);
  for (const BufferSlice& slice : bindings) {
    std::vector<BindGroupId>& users = buffers_[slice.buffer].groups;
    if (users.empty() || users.back() != id) users.push_back(id);
  }
  ++counters_.bind_groups_created;
  return id;
}

}  // namespace doppler::gpu
