// An opened WebGPU device. Creation of anything is counted, errors that arrive later fill the error slot and
// surface at the next submit() or await, and nothing here blocks except run_to_completion() (native only).
// Implementations: device_native.cpp (webgpu.h through a provider library), device_web.cpp (JavaScript
// imports). One thread owns a Device; pipeline compilation uses others inside.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "gpu/buffer.h"
#include "gpu/caps.h"
#include "gpu/pipeline.h"
#include "gpu/plan.h"

namespace doppler::gpu {

struct DeviceOptions {
  std::string provider;   // "", "dawn", "wgpu" or a path to a shared library; "" prefers Dawn on a GPU
  std::string adapter;    // "", an index of list_adapters() or a part of its name; "" prefers a discrete GPU
  std::string cache_dir;  // where compiled pipelines may be kept; "": nowhere
  // Keep the provider's bounds checks in every pipeline, for hunting a bug in a kernel. Otherwise trusted
  // pipelines run without them; Dawn has one switch for the whole device, so there the others do too (told
  // once, by name).
  bool bounds_checks = false;
  // The native way to upload weights: "ring" or "queue" (uploads_native.cpp); "": ring on a discrete GPU.
  std::string uploads = {};
  // Environment, if the field is empty: DOPPLER_WEBGPU, DOPPLER_DEVICE, DOPPLER_UPLOADS; DOPPLER_BOUNDS_CHECKS=1.
};

// Since the device was opened. `run --json` reports them, and what was created after load must be zero.
struct Counters {
  uint64_t submits = 0;
  uint64_t submit_ns = 0;  // host time spent inside submit(): encoding and handing over
  uint64_t dispatches = 0;
  uint64_t readback_bytes = 0;
  uint64_t upload_bytes = 0;
  // Host time spent copying what is uploaded, from memory or a mapped file, into staging memory.
  uint64_t upload_copy_ns = 0;
  uint64_t buffers_created = 0;
  uint64_t bind_groups_created = 0;
  uint64_t pipelines_created = 0;
  uint64_t compile_ns = 0;  // from the request for pipelines to the last finished one, whatever else went on
  // Compiled pipelines that the provider found in DeviceOptions::cache_dir, and those that it compiled and put there.
  // Only Dawn uses that folder.
  uint64_t blobs_found = 0, blobs_stored = 0;
  uint64_t buffer_bytes = 0;  // alive now
  uint64_t peak_buffer_bytes = 0;
};

struct Work {
  const Plan* plan = nullptr;
  uint32_t rows = 1;   // tokens in a prefill chunk
  uint32_t times = 1;  // replays in this submit: decode steps
};

// A few host-mappable buffers, made at load and reused in turn, so that results come back while later work
// runs.
class ReadbackRing {
 public:
  ReadbackRing() = default;
  ReadbackRing(std::vector<Buffer> slots) : slots_(std::move(slots)) {}
  uint32_t size() const { return static_cast<uint32_t>(slots_.size()); }
  const Buffer& slot(uint32_t index) const { return slots_[index]; }

 private:
  std::vector<Buffer> slots_;
};

// Copies `from` into slot `slot` of the ring at the end of a submit. A slot is free again once read() gave
// its contents.
struct ReadbackRequest {
  const ReadbackRing* ring = nullptr;
  uint32_t slot = 0;
  BufferSlice from;  // offset and bytes are multiples of 4
};

class Device {
 public:
  // Errors: no provider library, no Vulkan loader, no adapter, adapter not found (lists what there is),
  // limits too small. Warns in one line when it falls back from Dawn to wgpu-native, with the reason.
  // Natively it never waits: blocking code may start() the task and take() the result.
  static Task<Result<std::unique_ptr<Device>>> open(DeviceOptions options);
  virtual ~Device() = default;

  const Caps& caps() const { return caps_; }
  const Counters& counters() const { return counters_; }
  // The error slot: what went wrong since the last look, if anything; a lost device stays in error.
  virtual Result<void> status() = 0;

  // Out of memory, or larger than the device allows, is an error that names the buffer and both sizes.
  // Contents are zero, unless the description does not ask for that.
  virtual Task<Result<Buffer>> create_buffer(BufferDesc desc) = 0;
  Task<Result<ReadbackRing>> create_readback_ring(uint32_t slots, uint64_t bytes_per_slot);
  // Compiles concurrently. An error names the pipeline and quotes the compiler. Results are in order.
  virtual Task<Result<std::vector<PipelineId>>> create_pipelines(
      std::vector<PipelineDesc> descs, std::function<void(uint32_t done, uint32_t total)> progress) = 0;
  virtual Result<BindGroupId> create_bind_group(PipelineId pipeline,
                                                std::span<const BufferSlice> bindings) = 0;

  // Small writes (step state, prompt tokens, parameters): ordered before the next submit. offset and size are
  // multiples of 4.
  virtual Result<void> write(const Buffer& buffer, uint64_t offset, std::span<const uint8_t> bytes) = 0;
  // Weights: any size, in pieces, at a pace that keeps host memory bounded; one at a time. `bytes` are read when the
  // task is done, the GPU has them before the next submit. The native device keeps some staging memory until idle().
  virtual Task<Result<void>> upload(const Buffer& buffer, uint64_t offset,
                                    std::span<const uint8_t> bytes) = 0;
  // Weights that never enter this program's memory: from a stream the host knows by number (browser; natively
  // an error, because there a mapped file is uploaded).
  virtual Task<Result<void>> upload_stream(const Buffer& buffer, uint64_t offset, uint32_t stream,
                                           uint64_t stream_offset, uint64_t bytes) = 0;

  // Replays the works, in order, in one command buffer; then the readback copy. Returns when queued.
  virtual Result<void> submit(std::span<const Work> works, const ReadbackRequest* readback = nullptr) = 0;
  // The contents of a slot once the submit that filled it is done.
  virtual Task<Result<std::vector<uint8_t>>> read(const ReadbackRing& ring, uint32_t slot,
                                                  uint64_t bytes) = 0;
  // For tests and whole-tensor dumps: waits for all work, copies through a temporary buffer.
  Task<Result<std::vector<uint8_t>>> read_buffer(BufferSlice from);
  // All submitted work is done.
  virtual Task<Result<void>> idle() = 0;

  // Runs the plan once, with a compute pass and two timestamps for each dispatch. Nanoseconds per command
  // (copies are 0). For profiles only: the passes cost time that calibration runs must not pay.
  virtual Task<Result<std::vector<uint64_t>>> time_commands(const Plan& plan, uint32_t rows) = 0;
  // Nanoseconds of `times` replays in one submit, from the first dispatch to the end of the last: two timestamps in
  // all, the passes as submit() makes them. For investigations.
  virtual Task<Result<uint64_t>> time_replays(const Plan& plan, uint32_t rows, uint32_t times) = 0;

  // Lets callbacks run; if no callback is ready, it waits up to `microseconds` for one. Native only (browser: no-op).
  virtual void poll(uint64_t microseconds) = 0;

 protected:
  friend class Buffer;
  virtual void free_buffer(uint32_t id) = 0;

  Caps caps_;
  Counters counters_;
};

// Says by name that a GPU's kernels are sized for kAssumedComputeUnits. CPU devices have kernels of their own. open()
// calls it.
void log_assumed_units(const Caps& caps);

struct AdapterInfo {
  std::string provider;  // "dawn", "wgpu"
  Caps caps;             // limits and features the adapter offers
  std::string problem;   // empty, or why Doppler cannot use it
};
// Every adapter of every provider found, for `doppler devices` and for error messages.
std::vector<AdapterInfo> list_adapters(const std::string& provider);

// Drives a task from ordinary blocking code. Native only.
template <class T>
T run_to_completion(Device& device, Task<T> task) {
  task.start();
  while (!task.done()) device.poll(1000);
  return task.take();
}

}  // namespace doppler::gpu
