// RecordingDevice: keeps descriptions, carries nothing out; see recording_device.h.
#include "gpu/recording_device.h"

#include <algorithm>
#include <cstring>

namespace doppler::gpu {

RecordingDevice::RecordingDevice(Caps caps, std::vector<KnownWord> words) : words_(std::move(words)) {
  caps_ = std::move(caps);
  caps_.uploads = UploadWay::kNone;
}

RecordingDevice::~RecordingDevice() = default;

std::span<const uint8_t> RecordingDevice::uniform(const BufferSlice& slice) const {
  return std::span(buffers_[slice.buffer].bytes).subspan(slice.offset, slice.bytes);
}

Task<Result<Buffer>> RecordingDevice::create_buffer(BufferDesc desc) {
  if (desc.bytes == 0) co_return fail(ErrorKind::kInternal, "Buffer \"%s\" has no bytes.", desc.name.c_str());
  if (desc.bytes > caps_.max_buffer_bytes) {
    co_return fail(ErrorKind::kOutOfMemory,
                   "Buffer \"%s\" (%s) is larger than %s allows for one buffer (%s).", desc.name.c_str(),
                   format_bytes(desc.bytes).c_str(), caps_.adapter.c_str(),
                   format_bytes(caps_.max_buffer_bytes).c_str());
  }
  const auto id = static_cast<uint32_t>(buffers_.size());
  const uint64_t bytes = desc.bytes;
  KeptBuffer kept;
  const uint32_t same = ++name_counts_[desc.name];
  kept.unique_name = same == 1 ? desc.name : format_text("%s#%u", desc.name.c_str(), same);
  if (desc.use == BufferUse::kUniform) kept.bytes.resize(bytes);
  kept.desc = std::move(desc);
  buffers_.push_back(std::move(kept));
  ++counters_.buffers_created;
  counters_.buffer_bytes += bytes;
  counters_.peak_buffer_bytes = std::max(counters_.peak_buffer_bytes, counters_.buffer_bytes);
  co_return Buffer(this, id, bytes);
}

void RecordingDevice::free_buffer(uint32_t id) { counters_.buffer_bytes -= buffers_[id].desc.bytes; }

Task<Result<std::vector<PipelineId>>> RecordingDevice::create_pipelines(
    std::vector<PipelineDesc> descs, std::function<void(uint32_t done, uint32_t total)> progress) {
  std::vector<PipelineId> ids;
  for (PipelineDesc& desc : descs) {
    ids.push_back(static_cast<PipelineId>(pipelines_.size()));
    pipelines_.push_back(std::move(desc));
  }
  counters_.pipelines_created += ids.size();
  const auto count = static_cast<uint32_t>(ids.size());
  if (progress) progress(count, count);
  co_return ids;
}

Result<BindGroupId> RecordingDevice::create_bind_group(PipelineId pipeline,
                                                       std::span<const BufferSlice> bindings) {
  groups_.push_back({.pipeline = pipeline, .bindings = {bindings.begin(), bindings.end()}});
  ++counters_.bind_groups_created;
  return static_cast<BindGroupId>(groups_.size() - 1);
}

Result<void> RecordingDevice::write(const Buffer& buffer, uint64_t offset, std::span<const uint8_t> bytes) {
  KeptBuffer& kept = buffers_[buffer.id()];
  if (offset > buffer.bytes() || bytes.size() > buffer.bytes() - offset) {
    return fail(ErrorKind::kInternal, "Cannot write %zu bytes at %llu of buffer \"%s\", which has %llu.",
                bytes.size(), static_cast<unsigned long long>(offset), kept.unique_name.c_str(),
                static_cast<unsigned long long>(buffer.bytes()));
  }
  if (!kept.bytes.empty() && !bytes.empty()) {
    std::memcpy(kept.bytes.data() + offset, bytes.data(), bytes.size());
  }
  counters_.upload_bytes += bytes.size();
  return {};
}

Task<Result<void>> RecordingDevice::upload(const Buffer&, uint64_t, std::span<const uint8_t> bytes) {
  counters_.upload_bytes += bytes.size();
  co_return Result<void>();
}

Task<Result<void>> RecordingDevice::upload_stream(const Buffer&, uint64_t, uint32_t, uint64_t,
                                                  uint64_t bytes) {
  counters_.upload_bytes += bytes;
  co_return Result<void>();
}

Result<void> RecordingDevice::submit(std::span<const Work>, const ReadbackRequest* readback) {
  ++counters_.submits;
  if (readback) buffers_[readback->ring->slot(readback->slot).id()].filled_from = readback->from;
  return {};
}

Task<Result<std::vector<uint8_t>>> RecordingDevice::read(const ReadbackRing& ring, uint32_t slot,
                                                         uint64_t bytes) {
  std::vector<uint8_t> out(bytes);
  const BufferSlice& from = buffers_[ring.slot(slot).id()].filled_from;
  for (const KnownWord& word : words_) {
    if (from.bytes == 0 || word.buffer != buffers_[from.buffer].desc.name) continue;
    if (word.offset < from.offset || word.offset + sizeof(word.value) > from.offset + bytes) continue;
    std::memcpy(out.data() + (word.offset - from.offset), &word.value, sizeof(word.value));
  }
  counters_.readback_bytes += bytes;
  co_return out;
}

Task<Result<void>> RecordingDevice::idle() { co_return Result<void>(); }

Task<Result<std::vector<uint64_t>>> RecordingDevice::time_commands(const Plan& plan, uint32_t) {
  co_return fail(ErrorKind::kUnsupported,
                 "Plan \"%s\" cannot be timed: the device only records, nothing runs on it.",
                 plan.name.c_str());
}

Task<Result<uint64_t>> RecordingDevice::time_replays(const Plan& plan, uint32_t, uint32_t) {
  co_return fail(ErrorKind::kUnsupported,
                 "Plan \"%s\" cannot be timed: the device only records, nothing runs on it.",
                 plan.name.c_str());
}

void RecordingDevice::poll(uint64_t) {}

}  // namespace doppler::gpu
