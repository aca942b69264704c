// GPU time from timestamp queries: of every command of a plan, one pass per dispatch, as many submits as the size of a
// query set needs; of some replays as a whole.
#include <cstring>
#include <utility>

#include "gpu/recorder_native.h"

namespace doppler::gpu {
namespace {

constexpr uint32_t kMaxQueries = 4096;  // WebGPU's limit of one set
constexpr uint32_t kQueriesPerCommand = 2;
constexpr uint32_t kCommandsPerSubmit = kMaxQueries / kQueriesPerCommand;
constexpr uint64_t kQueryBytes = 8;

// The query set and the buffer it is resolved into, for one time_commands() or time_replays().
struct QueryResources {
  const Provider& api;
  WGPUQuerySet set = nullptr;
  WGPUBuffer resolved = nullptr;

  QueryResources(const Provider& provider, WGPUDevice device, uint32_t count) : api(provider) {
    WGPUQuerySetDescriptor queries = WGPU_QUERY_SET_DESCRIPTOR_INIT;
    queries.type = WGPUQueryType_Timestamp;
    queries.count = count;
    set = api.DeviceCreateQuerySet(device, &queries);
    WGPUBufferDescriptor buffer = WGPU_BUFFER_DESCRIPTOR_INIT;
    buffer.usage = WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc;
    buffer.size = count * kQueryBytes;
    resolved = api.DeviceCreateBuffer(device, &buffer);
  }
  ~QueryResources() {
    if (set) api.QuerySetRelease(set);  // without a destroy: wgpu-native panics in the release after one
    if (resolved) {
      api.BufferDestroy(resolved);
      api.BufferRelease(resolved);
    }
  }
  QueryResources(const QueryResources&) = delete;
  QueryResources& operator=(const QueryResources&) = delete;
};

}  // namespace

Task<Result<std::vector<uint64_t>>> NativeDevice::time_commands(const Plan& plan, uint32_t rows) {
  DP_CO_CHECK(status());
  if (!caps_.timestamps) {
    co_return fail(ErrorKind::kUnsupported, "%s has no timestamps under %s.", caps_.adapter.c_str(),
                   caps_.provider.c_str());
  }
  const auto total = static_cast<uint32_t>(plan.words.size() / kPlanCommandWords);
  std::vector<uint64_t> times(total, 0);
  if (total == 0) co_return times;
  const uint32_t per_submit = std::min(total, kCommandsPerSubmit);
  auto making = create_readback_ring(1, per_submit * kQueriesPerCommand * kQueryBytes);
  DP_CO_TRY(const ReadbackRing ring, co_await std::move(making));
  const QueryResources queries(api(), device_, per_submit * kQueriesPerCommand);
  for (uint32_t first = 0; first < total; first += per_submit) {
    const uint32_t count = std::min(per_submit, total - first);
    DP_CO_TRY(const uint32_t written,
              submit_timed(plan, rows, first, count, {queries.set, queries.resolved, ring.slot(0).id()}));
    if (written == 0) continue;
    auto reading = read(ring, 0, written * kQueryBytes);
    DP_CO_TRY(const auto bytes, co_await std::move(reading));
    uint32_t query = 0;
    for (uint32_t i = first; i < first + count; ++i) {
      if (plan.words[size_t{i} * kPlanCommandWords] != kDispatch) continue;
      uint64_t span[kQueriesPerCommand] = {};
      std::memcpy(span, bytes.data() + query * kQueryBytes, sizeof span);
      query += kQueriesPerCommand;
      times[i] = span[1] > span[0] ? span[1] - span[0] : 0;
    }
  }
  co_return times;
}

Task<Result<uint64_t>> NativeDevice::time_replays(const Plan& plan, uint32_t rows, uint32_t times) {
  DP_CO_CHECK(status());
  if (!caps_.timestamps) {
    co_return fail(ErrorKind::kUnsupported, "%s has no timestamps under %s.", caps_.adapter.c_str(),
                   caps_.provider.c_str());
  }
  auto making = create_readback_ring(1, kQueriesPerCommand * kQueryBytes);
  DP_CO_TRY(const ReadbackRing ring, co_await std::move(making));
  const QueryResources queries(api(), device_, kQueriesPerCommand);
  DP_CO_CHECK(submit_replays(plan, rows, times, {queries.set, queries.resolved, ring.slot(0).id()}));
  auto reading = read(ring, 0, kQueriesPerCommand * kQueryBytes);
  DP_CO_TRY(const auto bytes, co_await std::move(reading));
  uint64_t span[kQueriesPerCommand] = {};
  std::memcpy(span, bytes.data(), sizeof span);
  co_return span[1] > span[0] ? span[1] - span[0] : 0;
}

Result<void> NativeDevice::submit_replays(const Plan& plan, uint32_t rows, uint32_t times,
                                          TimedTargets targets) {
  const ErrorTrap trap;
  WGPUCommandEncoder encoder = api().DeviceCreateCommandEncoder(device_, nullptr);
  uint64_t dispatches = 0;
  const auto record = [&]() -> Result<void> {
    clear_new_buffers(encoder);
    Recorder recorder(*this, encoder);
    WGPUPassTimestampWrites writes = WGPU_PASS_TIMESTAMP_WRITES_INIT;
    writes.querySet = targets.set;
    writes.beginningOfPassWriteIndex = 0;
    writes.endOfPassWriteIndex = WGPU_QUERY_SET_INDEX_UNDEFINED;
    recorder.begin_pass(&writes);
    for (uint32_t time = 0; time < times; ++time) DP_CHECK(recorder.replay(plan, rows));
    recorder.end_pass();
    writes.beginningOfPassWriteIndex = WGPU_QUERY_SET_INDEX_UNDEFINED;
    writes.endOfPassWriteIndex = 1;
    recorder.begin_pass(&writes);
    recorder.end_pass();
    api().CommandEncoderResolveQuerySet(encoder, targets.set, 0, kQueriesPerCommand, targets.resolved, 0);
    api().CommandEncoderCopyBufferToBuffer(encoder, targets.resolved, 0, buffers_[targets.readback].handle, 0,
                                           kQueriesPerCommand * kQueryBytes);
    dispatches = recorder.dispatches();
    return {};
  };
  DP_TRY(WGPUCommandBuffer commands, finish(encoder, record(), trap));
  DP_CHECK(submit_commands(commands));
  counters_.dispatches += dispatches;
  return {};
}

// Records `count` commands from `first` on, dispatches in passes of their own; returns the number of queries.
Result<uint32_t> NativeDevice::submit_timed(const Plan& plan, uint32_t rows, uint32_t first, uint32_t count,
                                            TimedTargets targets) {
  const ErrorTrap trap;
  WGPUCommandEncoder encoder = api().DeviceCreateCommandEncoder(device_, nullptr);
  uint32_t query = 0;
  uint64_t dispatches = 0;
  const auto record = [&]() -> Result<void> {
    clear_new_buffers(encoder);
    Recorder recorder(*this, encoder);
    for (uint32_t i = first; i < first + count; ++i) {
      const uint32_t* words = plan.words.data() + size_t{i} * kPlanCommandWords;
      if (words[0] != kDispatch) {
        DP_CHECK(recorder.copy(words, rows));
        continue;
      }
      WGPUPassTimestampWrites writes = WGPU_PASS_TIMESTAMP_WRITES_INIT;
      writes.querySet = targets.set;
      writes.beginningOfPassWriteIndex = query;
      writes.endOfPassWriteIndex = query + 1;
      query += kQueriesPerCommand;
      recorder.begin_pass(&writes);
      DP_CHECK(recorder.dispatch(words, rows));
      recorder.end_pass();
    }
    if (query > 0) {
      api().CommandEncoderResolveQuerySet(encoder, targets.set, 0, query, targets.resolved, 0);
      api().CommandEncoderCopyBufferToBuffer(encoder, targets.resolved, 0, buffers_[targets.readback].handle,
                                             0, query * kQueryBytes);
    }
    dispatches = recorder.dispatches();
    return {};
  };
  DP_TRY(WGPUCommandBuffer commands, finish(encoder, record(), trap));
  DP_CHECK(submit_commands(commands));
  counters_.dispatches += dispatches;
  return query;
}

}  // namespace doppler::gpu
