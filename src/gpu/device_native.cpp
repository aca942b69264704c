// A device's beginning and end, and how it waits: callbacks of the provider mark operations as fired, poll()
// resumes who waits for them. See device_native.h for the other parts; open_native.cpp chooses the adapter.
#include "gpu/device_native.h"

#include <chrono>

#include "base/log.h"
#include "gpu/guards_native.h"

namespace doppler::gpu {
namespace {

struct DeviceAnswer {
  bool done = false;
  WGPUDevice device = nullptr;
  std::string message;
};

void on_device(WGPURequestDeviceStatus, WGPUDevice device, WGPUStringView message, void* answer, void*) {
  auto* out = static_cast<DeviceAnswer*>(answer);
  out->device = device;
  out->message = from_view(message);
  out->done = true;
}

// The pause between two polls of wgpu-native: a fraction of the time waited so far, so that the answer is late by at
// most that fraction. A poll every 20 us took a fifth of a core from llvmpipe.
constexpr int kPauseFraction = 16;
constexpr std::chrono::microseconds kShortestPause(20), kLongestPause(1000);

}  // namespace

NativeDevice::NativeDevice(NativeAdapter adapter, Caps caps, std::string cache_dir, bool bounds_checks)
    : adapter_(std::move(adapter)), bounds_checks_(bounds_checks) {
  caps_ = std::move(caps);
  cache_.folder = std::move(cache_dir);
}

NativeDevice::~NativeDevice() {
  errors_.close();
  jobs_.clear();  // joins the compiling threads
  const AbortGuard guard;
  for (WGPUBindGroup group : groups_) {
    if (group) api().BindGroupRelease(group);
  }
  for (NativePipeline& pipeline : pipelines_) api().ComputePipelineRelease(pipeline.handle);
  for (NativeLayout& layout : layouts_) {
    api().PipelineLayoutRelease(layout.pipeline);
    api().BindGroupLayoutRelease(layout.group);
  }
  release_staging();
  for (NativeBuffer& buffer : buffers_) {
    if (!buffer.handle) continue;
    api().BufferDestroy(buffer.handle);
    api().BufferRelease(buffer.handle);
  }
  if (device_) {
    // Destroying the buffers above ended their maps; this lets the callbacks say so before the device goes.
    if (!errors_.lost()) wait_some(0);
    api().QueueRelease(queue_);
    if (!errors_.lost()) api().DeviceDestroy(device_);
    api().DeviceRelease(device_);
  }
  waits_.clear();
}

Result<void> NativeDevice::request_device() {
  std::vector<WGPUFeatureName> features;
  if (caps_.f16) features.push_back(WGPUFeatureName_ShaderF16);
  if (caps_.timestamps) features.push_back(WGPUFeatureName_TimestampQuery);
  if (caps_.subgroups) features.push_back(api().is_dawn ? WGPUFeatureName_Subgroups : kWgpuSubgroups);
  if (caps_.matrix_f16) features.push_back(kDawnSubgroupMatrix);
  // Without it a map on one thread during a submit on another crashes Dawn; compilation uses threads.
  if (api().is_dawn && adapter_.has_feature(kDawnImplicitSynchronization)) {
    features.push_back(kDawnImplicitSynchronization);
  }

  std::vector<const char*> enabled(std::begin(kDawnEnabledToggles), std::end(kDawnEnabledToggles));
  if (!bounds_checks_) {
    enabled.push_back("disable_robustness");  // 15-80 % of a matrix product on an H200
    enabled.push_back("disable_polyfills_on_integer_div_and_mod");
  }
  const char* const disabled[] = {
      // without this the first touch of a 1 GB buffer clears the whole buffer: seconds
      "lazy_clear_resource_on_first_use",
      "timestamp_quantization",  // 65 us steps
  };
  DawnCache cache = make_dawn_cache(cache_);
  DawnToggles toggles = {.chain = {cache_.folder.empty() ? nullptr : &cache.chain, kDawnTogglesSType},
                         .enabled_count = enabled.size(),
                         .enabled = enabled.data(),
                         .disabled_count = std::size(disabled),
                         .disabled = disabled};
  WGPULimits limits = adapter_.limits();
  limits.nextInChain = nullptr;
  WGPUDeviceDescriptor descriptor = WGPU_DEVICE_DESCRIPTOR_INIT;
  if (api().is_dawn) descriptor.nextInChain = &toggles.chain;
  descriptor.requiredFeatureCount = features.size();
  descriptor.requiredFeatures = features.data();
  descriptor.requiredLimits = &limits;
  descriptor.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowSpontaneous;
  descriptor.deviceLostCallbackInfo.callback = ErrorSlot::on_lost;
  descriptor.deviceLostCallbackInfo.userdata1 = &errors_;
  descriptor.uncapturedErrorCallbackInfo.callback = ErrorSlot::on_uncaptured;
  descriptor.uncapturedErrorCallbackInfo.userdata1 = &errors_;

  DeviceAnswer answer;
  WGPURequestDeviceCallbackInfo callback = WGPU_REQUEST_DEVICE_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.callback = on_device;
  callback.userdata1 = &answer;
  const StderrCapture quiet;
  wait_for(api(), adapter_.instance(), api().AdapterRequestDevice(adapter_.handle(), &descriptor, callback),
           answer.done);
  if (!answer.device) {
    return fail(ErrorKind::kDevice, "%s could not open \"%s\": %s", caps_.provider.c_str(),
                caps_.adapter.c_str(), answer.message.c_str());
  }
  device_ = answer.device;
  queue_ = api().DeviceGetQueue(device_);
  return {};
}

Result<void> NativeDevice::start() {
  if (!api().is_dawn) AbortGuard::install();
  DP_CHECK(request_device());
  DP_CHECK(check_features());
  caps_.dp4a = has_dp4a();
  if (caps_.subgroups && caps_.subgroup_max == 0) {
    DP_CHECK_WHILE(measure_subgroups(), "measuring the subgroup size of %s", caps_.adapter.c_str());
  }
  log_assumed_units(caps_);
  counters_ = {};
  count_blobs();
  return {};
}

void NativeDevice::count_blobs() {
  counters_.blobs_found = cache_.found.load();
  counters_.blobs_stored = cache_.stored.load();
}

Result<void> NativeDevice::status() { return errors_.take(); }

std::shared_ptr<WaitState> NativeDevice::from_userdata(void* userdata) {
  auto* holder = static_cast<std::shared_ptr<WaitState>*>(userdata);
  std::shared_ptr<WaitState> state = std::move(*holder);
  delete holder;
  return state;
}

// A provider's problem, unless the device is gone, which explains it better.
Result<void> NativeDevice::lost_or(const std::string& problem) {
  // wgpu-native says it only if something fails.
  if (problem.find("device is lost") != std::string::npos) {
    errors_.lose("The GPU device was lost. Open it again to go on.");
  }
  if (errors_.lost()) return errors_.take();
  return fail(ErrorKind::kDevice, "%s", problem.c_str());
}

Task<Result<void>> NativeDevice::idle() {
  if (errors_.lost()) co_return errors_.take();
  auto state = std::make_shared<WaitState>();
  WGPUQueueWorkDoneCallbackInfo callback = WGPU_QUEUE_WORK_DONE_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.callback = [](WGPUQueueWorkDoneStatus done, WGPUStringView message, void* userdata, void*) {
    const auto fired = from_userdata(userdata);
    fired->ok = done == WGPUQueueWorkDoneStatus_Success;
    fired->message = from_view(message);
    fired->fired.store(true, std::memory_order_release);
  };
  callback.userdata1 = to_userdata(state);
  NativeWait wait = {.state = state};
  wait.future = api().QueueOnSubmittedWorkDone(queue_, callback);
  const Completion<bool> completion = wait.completion;
  waits_.push_back(std::move(wait));
  co_await completion;
  release_staging();
  count_blobs();
  if (errors_.lost() || !state->ok) co_return lost_or("Waiting for the GPU failed: " + state->message);
  co_return status();
}

void NativeDevice::poll(uint64_t microseconds) {
  wait_some(0);
  if (finish_ready() || finish_compile_jobs() || microseconds == 0) return;
  if (!waits_.empty()) {
    wait_some(microseconds);
  } else if (!jobs_.empty()) {
    CompileJob& job = *jobs_.front();
    std::unique_lock lock(job.mutex);
    job.changed.wait_for(lock, std::chrono::microseconds(microseconds),
                         [&job] { return job.done.load() > job.reported; });
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  }
  finish_ready();
  finish_compile_jobs();
}

// Gives the provider time to call back, at most `microseconds`. Dawn waits that long for the oldest operation. The wait
// of wgpu-native takes no limit, so we poll it in a loop.
void NativeDevice::wait_some(uint64_t microseconds) {
  const AbortGuard guard;
  if (api().is_dawn) {
    if (microseconds > 0 && !waits_.empty()) {
      WGPUFutureWaitInfo info = {.future = waits_.front().future, .completed = 0};
      api().InstanceWaitAny(adapter_.instance(), 1, &info, microseconds * 1000);
    }
    api().InstanceProcessEvents(adapter_.instance());
    return;
  }
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::microseconds(microseconds);
  while (!errors_.lost()) {
    api().DevicePoll(device_, /*wait=*/false, nullptr);
    if (waits_.empty() || waits_.front().state->fired.load(std::memory_order_acquire)) return;
    const auto now = Clock::now();
    if (now >= end) return;
    const auto taken = std::chrono::duration_cast<std::chrono::microseconds>(now - waits_.front().begin);
    std::this_thread::sleep_for(std::clamp(taken / kPauseFraction, kShortestPause, kLongestPause));
  }
}

// Completes every operation that fired, and every operation when the device is lost. Completing resumes a coroutine,
// which may start new operations; the loop therefore takes one at a time.
bool NativeDevice::finish_ready() {
  bool any = false;
  for (size_t i = 0; i < waits_.size();) {
    const bool fired = waits_[i].state->fired.load(std::memory_order_acquire);
    if (!fired && !errors_.lost()) {
      ++i;
      continue;
    }
    const Completion<bool> completion = waits_[i].completion;
    waits_.erase(waits_.begin() + static_cast<ptrdiff_t>(i));
    completion.complete(fired);
    any = true;
    i = 0;
  }
  return any;
}

}  // namespace doppler::gpu
