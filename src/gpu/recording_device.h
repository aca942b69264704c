// A Device without a GPU: it has the capabilities it is given, keeps the description of everything that is made on it,
// and carries nothing out. A model loaded on it gives the plans that a device with these capabilities would replay, in
// moments and without its weights. For `doppler graph` and for digests of plans (plan_text.h, which reads what is kept
// here). Native only.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "gpu/device.h"

namespace doppler::gpu {

// A word that reads give in place of 0: what a kernel would have left there.
struct KnownWord {
  std::string buffer;   // BufferDesc::name
  uint64_t offset = 0;  // bytes, a multiple of 4
  uint32_t value = 0;
};

class RecordingDevice final : public Device {
 public:
  // Sets caps.uploads to UploadWay::kNone: no weights are read for this device.
  explicit RecordingDevice(Caps caps, std::vector<KnownWord> words = {});
  ~RecordingDevice() override;

  struct BindGroup {
    PipelineId pipeline = 0;
    std::vector<BufferSlice> bindings;  // by binding number
  };
  // Everything that was made, also after it was freed. Ids are those of plans; they must be this device's. If several
  // buffers have one name, it is followed by a number from the second on, in order of creation: "cache_k#2".
  const std::string& buffer_name(uint32_t buffer) const { return buffers_[buffer].unique_name; }
  const PipelineDesc& pipeline(PipelineId id) const { return pipelines_[id]; }
  const BindGroup& bind_group(BindGroupId id) const { return groups_[id]; }
  // The bytes that were written to a uniform buffer: parameters.
  std::span<const uint8_t> uniform(const BufferSlice& slice) const;

  Result<void> status() override { return {}; }
  // Errors: no bytes, or more than Caps::max_buffer_bytes.
  Task<Result<Buffer>> create_buffer(BufferDesc desc) override;
  Task<Result<std::vector<PipelineId>>> create_pipelines(
      std::vector<PipelineDesc> descs, std::function<void(uint32_t done, uint32_t total)> progress) override;
  Result<BindGroupId> create_bind_group(PipelineId pipeline, std::span<const BufferSlice> bindings) override;
  // Keeps what goes to uniform buffers.
  Result<void> write(const Buffer& buffer, uint64_t offset, std::span<const uint8_t> bytes) override;
  // These two touch no byte.
  Task<Result<void>> upload(const Buffer& buffer, uint64_t offset, std::span<const uint8_t> bytes) override;
  Task<Result<void>> upload_stream(const Buffer& buffer, uint64_t offset, uint32_t stream,
                                   uint64_t stream_offset, uint64_t bytes) override;
  // Runs nothing.
  Result<void> submit(std::span<const Work> works, const ReadbackRequest* readback) override;
  // Zeros, and the known words of the buffer that the submit named.
  Task<Result<std::vector<uint8_t>>> read(const ReadbackRing& ring, uint32_t slot, uint64_t bytes) override;
  Task<Result<void>> idle() override;
  // Errors: always, there is nothing to time.
  Task<Result<std::vector<uint64_t>>> time_commands(const Plan& plan, uint32_t rows) override;
  Task<Result<uint64_t>> time_replays(const Plan& plan, uint32_t rows, uint32_t times) override;
  void poll(uint64_t microseconds) override;

 private:
  struct KeptBuffer {
    BufferDesc desc;
    std::string unique_name;
    std::vector<uint8_t> bytes;  // of a uniform buffer
    BufferSlice filled_from;     // of a readback slot: what the latest submit copies into it
  };
  void free_buffer(uint32_t id) override;

  std::vector<KnownWord> words_;
  std::vector<KeptBuffer> buffers_;
  std::map<std::string, uint32_t> name_counts_;
  std::vector<PipelineDesc> pipelines_;
  std::vector<BindGroup> groups_;
};

}  // namespace doppler::gpu
