// The parts of Device that are the same natively and in the browser.
#include "gpu/device.h"

#include "base/log.h"

namespace doppler::gpu {

const char* adapter_type_name(AdapterType type) {
  switch (type) {
    case AdapterType::kDiscrete:
      return "discrete GPU";
    case AdapterType::kIntegrated:
      return "integrated GPU";
    case AdapterType::kCpu:
      return "CPU";
    case AdapterType::kUnknown:
      break;
  }
  return "unknown";
}

void log_assumed_units(const Caps& caps) {
  if (caps.compute_units != 0 || caps.type == AdapterType::kCpu) return;
  log(LogLevel::kInfo, "%s does not tell how many compute units it has; kernels are sized for %u.",
      caps.adapter.empty() ? "The device" : caps.adapter.c_str(), caps.filling_units());
}

const char* upload_way_name(UploadWay way) {
  switch (way) {
    case UploadWay::kRing:
      return "ring";
    case UploadWay::kQueue:
      return "queue";
    case UploadWay::kNone:
      return "none";
    case UploadWay::kHost:
      break;
  }
  return "host";
}

Buffer::~Buffer() {
  if (device_) device_->free_buffer(id_);
}

Task<Result<ReadbackRing>> Device::create_readback_ring(uint32_t slots, uint64_t bytes_per_slot) {
  std::vector<Buffer> buffers;
  for (uint32_t i = 0; i < slots; ++i) {
    BufferDesc desc = {
        .name = format_text("readback %u", i), .bytes = bytes_per_slot, .use = BufferUse::kReadback};
    auto making = create_buffer(std::move(desc));
    DP_CO_TRY(Buffer buffer, co_await std::move(making));
    buffers.push_back(std::move(buffer));
  }
  co_return ReadbackRing(std::move(buffers));
}

Task<Result<std::vector<uint8_t>>> Device::read_buffer(BufferSlice from) {
  auto making = create_readback_ring(1, from.bytes);
  DP_CO_TRY(const ReadbackRing ring, co_await std::move(making));
  const ReadbackRequest request = {.ring = &ring, .slot = 0, .from = from};
  DP_CO_CHECK(submit({}, &request));
  auto reading = read(ring, 0, from.bytes);
  co_return co_await std::move(reading);
}

}  // namespace doppler::gpu
