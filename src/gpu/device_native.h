// The Device over webgpu.h: one class in several files. device_native.cpp has start, end and waits; the others are
// buffers_native.cpp, uploads_native.cpp, pipelines_native.cpp, probes_native.cpp, replay_native.cpp (submit) and
// timing_native.cpp. The class runs on the owner's thread, except for compilation (CompileJob).
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gpu/blob_cache_native.h"
#include "gpu/device.h"
#include "gpu/errors_native.h"
#include "gpu/instance_native.h"

namespace doppler::gpu {

struct NativeBuffer {
  WGPUBuffer handle = nullptr;  // null once freed; ids are never used again
  uint64_t bytes = 0;           // allocated: a multiple of 4
  uint64_t cleared_to = 0;  // bytes from here on hold whatever the memory held before; == bytes: all defined
  BufferUse use = BufferUse::kStorage;
  bool mapping = false;  // a read() is under way
  std::string name;
  std::vector<BindGroupId> groups;  // bind groups that name this buffer: released with it
};

struct NativeLayout {
  std::vector<BindKind> kinds;
  WGPUBindGroupLayout group = nullptr;
  WGPUPipelineLayout pipeline = nullptr;
};

struct NativePipeline {
  PipelineDesc desc;
  WGPUComputePipeline handle = nullptr;
  uint32_t layout = 0;
};

// One asynchronous operation of the provider: the callback, which may come on any call, marks it, and poll()
// then completes the waiting coroutine outside of any provider call.
struct WaitState {
  std::atomic<bool> fired = false;
  bool ok = false;
  std::string message;
};
struct NativeWait {
  std::shared_ptr<WaitState> state;
  WGPUFuture future = {};
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  Completion<bool> completion;  // true: fired, false: the device was lost first
};

// Pipelines being compiled by threads; completed by poll().
struct CompileJob {
  struct Item {
    PipelineDesc desc;
    uint32_t layout = 0;  // index in the device's table, and the layout's handle
    WGPUPipelineLayout layout_handle = nullptr;
    WGPUComputePipeline pipeline = nullptr;  // the result; poll() takes it
    std::string problem;
  };
  const Provider* provider = nullptr;
  WGPUDevice device = nullptr;
  std::vector<Item> items;
  std::function<void(uint32_t, uint32_t)> progress;
  uint32_t reported = 0;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now(), end = start;
  std::atomic<uint32_t> next = 0;
  std::atomic<uint32_t> done = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::thread> threads;
  Completion<bool> completion;

  ~CompileJob();
  void work();  // what each thread does
};

class NativeDevice final : public Device {
 public:
  NativeDevice(NativeAdapter adapter, Caps caps, std::string cache_dir, bool bounds_checks);
  ~NativeDevice() override;
  // Asks the adapter for a device, then measures what the provider does not tell.
  Result<void> start();

  Result<void> status() override;
  Task<Result<Buffer>> create_buffer(BufferDesc desc) override;
  Task<Result<std::vector<PipelineId>>> create_pipelines(
      std::vector<PipelineDesc> descs, std::function<void(uint32_t done, uint32_t total)> progress) override;
  Result<BindGroupId> create_bind_group(PipelineId pipeline, std::span<const BufferSlice> bindings) override;
  Result<void> write(const Buffer& buffer, uint64_t offset, std::span<const uint8_t> bytes) override;
  Task<Result<void>> upload(const Buffer& buffer, uint64_t offset, std::span<const uint8_t> bytes) override;
  Task<Result<void>> upload_stream(const Buffer& buffer, uint64_t offset, uint32_t stream,
                                   uint64_t stream_offset, uint64_t bytes) override;
  Result<void> submit(std::span<const Work> works, const ReadbackRequest* readback) override;
  Task<Result<std::vector<uint8_t>>> read(const ReadbackRing& ring, uint32_t slot, uint64_t bytes) override;
  Task<Result<void>> idle() override;
  Task<Result<std::vector<uint64_t>>> time_commands(const Plan& plan, uint32_t rows) override;
  Task<Result<uint64_t>> time_replays(const Plan& plan, uint32_t rows, uint32_t times) override;
  void poll(uint64_t microseconds) override;
  // For tests: the device is lost, as by a reset of its driver.
  void lose_for_test() { api().DeviceDestroy(device_); }

 private:
  friend class Recorder;
  const Provider& api() const { return adapter_.provider(); }
  void free_buffer(uint32_t id) override;

  // device_native.cpp
  Result<void> request_device();
  void wait_some(uint64_t microseconds);
  bool finish_ready();
  bool finish_compile_jobs();
  void count_blobs();
  Result<void> lost_or(const std::string& problem);

  // probes_native.cpp
  bool compiles(std::string_view wgsl);
  bool has_dp4a();
  Result<void> check_features();
  Result<void> measure_subgroups();

  // buffers_native.cpp
  Result<Buffer> make_buffer(BufferDesc desc);
  Unexpected no_memory(const BufferDesc& desc) const;
  Result<NativeBuffer*> find_buffer(uint32_t id);
  Result<void> check_range(const NativeBuffer& buffer, uint64_t offset, uint64_t bytes, const char* verb);
  void clear_before(WGPUCommandEncoder encoder, NativeBuffer& buffer, uint64_t offset, uint64_t bytes);
  void write_piece(NativeBuffer& buffer, uint64_t offset, std::span<const uint8_t> bytes);
  Task<Result<void>> map_and_copy(uint32_t id, uint64_t bytes, std::vector<uint8_t>& out);
  static void on_mapped(WGPUMapAsyncStatus status, WGPUStringView message, void* userdata, void*);

  // uploads_native.cpp
  struct StagingSlot {
    WGPUBuffer handle = nullptr;
    std::shared_ptr<WaitState> mapping;  // null: mapped
    Completion<bool> mapped;
  };
  Result<void> add_staging_slot();
  Task<Result<StagingSlot*>> next_staging_slot();
  Result<void> send(StagingSlot& slot, uint32_t id, uint64_t offset, uint64_t bytes);
  Task<Result<void>> upload_through_ring(uint32_t id, uint64_t offset, std::span<const uint8_t> bytes);
  Task<Result<void>> upload_by_queue(const Buffer& buffer, uint64_t offset, std::span<const uint8_t> bytes);
  void release_staging();

  // pipelines_native.cpp
  Result<uint32_t> find_layout(const std::vector<BindKind>& kinds);
  PipelineId find_pipeline(const PipelineDesc& desc) const;
  Result<std::shared_ptr<CompileJob>> plan_compile_job(const std::vector<PipelineDesc>& descs);
  Result<void> adopt(CompileJob& job);

  // replay_native.cpp
  void clear_new_buffers(WGPUCommandEncoder encoder);
  Result<WGPUCommandBuffer> finish(WGPUCommandEncoder encoder, Result<void> recorded, const ErrorTrap& trap);
  Result<void> hand_over(WGPUCommandBuffer commands);
  Result<void> submit_commands(WGPUCommandBuffer commands);

  // timing_native.cpp
  struct TimedTargets {
    WGPUQuerySet set;
    WGPUBuffer resolved;
    uint32_t readback;  // buffer id
  };
  Result<uint32_t> submit_timed(const Plan& plan, uint32_t rows, uint32_t first, uint32_t count,
                                TimedTargets targets);
  Result<void> submit_replays(const Plan& plan, uint32_t rows, uint32_t times, TimedTargets targets);

  // Waits for the operation that `begin(userdata)` starts; userdata is what the on_... callbacks need.
  static void* to_userdata(const std::shared_ptr<WaitState>& state) {
    return new std::shared_ptr<WaitState>(state);
  }
  static std::shared_ptr<WaitState> from_userdata(void* userdata);

  ErrorSlot errors_;  // outlives the handles below: their callbacks point at it
  NativeAdapter adapter_;
  BlobCache cache_;
  bool bounds_checks_;
  bool told_unchecked_ = false;
  WGPUDevice device_ = nullptr;
  WGPUQueue queue_ = nullptr;
  std::vector<NativeBuffer> buffers_;
  std::vector<uint32_t> uncleared_;  // buffers with cleared_to < bytes
  std::vector<NativeLayout> layouts_;
  std::vector<NativePipeline> pipelines_;
  std::multimap<size_t, PipelineId> pipeline_index_;  // by hash of the description
  std::vector<WGPUBindGroup> groups_;                 // null once a buffer of the group was freed
  std::vector<NativeWait> waits_;
  std::vector<std::shared_ptr<CompileJob>> jobs_;
  std::vector<StagingSlot> staging_;  // from the first large upload to the next idle()
  size_t next_staging_ = 0;
  uint64_t unwaited_upload_bytes_ = 0;  // bytes that upload_by_queue() wrote since it last waited
};

}  // namespace doppler::gpu
