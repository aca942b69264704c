// The Device over a JavaScript host's WebGPU (host_gpu_web.h). It checks what the native device checks, so
// that mistakes get the same sentences; the host only executes. Parts: device_web.cpp (memory, submits,
// errors), pipelines_web.cpp, open_web.cpp (capabilities).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/host_gpu_web.h"

namespace doppler::gpu {

class WebDevice final : public Device {
 public:
  explicit WebDevice(Caps caps);
  ~WebDevice() override;

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

  // The host reports these without a call: an error that no call waits for, or the loss of the device.
  void put_error(ErrorKind kind, std::string sentence);
  void lose(std::string sentence);

 private:
  struct WebBuffer {
    uint64_t bytes = 0;  // a multiple of 4; 0 once freed: ids are never used again
    BufferUse use = BufferUse::kStorage;
    bool reading = false;
    std::string name;
  };

  void free_buffer(uint32_t id) override;
  Result<WebBuffer*> find_buffer(uint32_t id);
  Result<void> check_range(const WebBuffer& buffer, uint64_t offset, uint64_t bytes, const char* verb) const;
  PipelineId find_pipeline(const PipelineDesc& desc) const;
  Result<WebBuffer*> find_slot(const ReadbackRing& ring, uint32_t slot);

  std::vector<WebBuffer> buffers_;
  std::vector<PipelineDesc> pipelines_;
  uint32_t groups_ = 0;
  uint64_t unwaited_upload_bytes_ = 0;
  std::optional<Error> first_error_;
  std::string lost_sentence_;  // empty: the device is there
};

}  // namespace doppler::gpu
