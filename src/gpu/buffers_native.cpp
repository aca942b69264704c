// GPU memory of the native device: creation, small writes, and reading back. Uploads: uploads_native.cpp.
#include <algorithm>
#include <cstring>
#include <utility>

#include "gpu/device_native.h"
#include "gpu/guards_native.h"

namespace doppler::gpu {
namespace {

constexpr uint64_t kBuffersWordBytes = 4;  // WebGPU copies and writes whole words

WGPUBufferUsage usage_of(BufferUse use) {
  switch (use) {
    case BufferUse::kStorage:
      return WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
    case BufferUse::kUniform:
      return WGPUBufferUsage_Uniform | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
    case BufferUse::kReadback:
      return WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst;
  }
  return WGPUBufferUsage_None;
}

}  // namespace

Task<Result<Buffer>> NativeDevice::create_buffer(BufferDesc desc) { co_return make_buffer(std::move(desc)); }

Unexpected NativeDevice::no_memory(const BufferDesc& desc) const {
  const std::string total = caps_.memory_bytes ? " of " + format_bytes(caps_.memory_bytes) : "";
  return fail(ErrorKind::kOutOfMemory,
              "There is no memory for buffer \"%s\" (%s) on %s: Doppler uses %s%s already.",
              desc.name.c_str(), format_bytes(desc.bytes).c_str(), caps_.adapter.c_str(),
              format_bytes(counters_.buffer_bytes).c_str(), total.c_str());
}

Result<Buffer> NativeDevice::make_buffer(BufferDesc desc) {
  DP_CHECK(status());
  if (desc.bytes == 0) return fail(ErrorKind::kInternal, "Buffer \"%s\" has no bytes.", desc.name.c_str());
  if (desc.bytes > caps_.max_buffer_bytes) {
    return fail(ErrorKind::kOutOfMemory, "Buffer \"%s\" (%s) is larger than %s allows for one buffer (%s).",
                desc.name.c_str(), format_bytes(desc.bytes).c_str(), caps_.adapter.c_str(),
                format_bytes(caps_.max_buffer_bytes).c_str());
  }
  // A CPU driver promises more memory than there is, and the process dies when it is touched; a GPU's
  // refuses.
  const uint64_t in_use = counters_.buffer_bytes;
  if (caps_.type == AdapterType::kCpu && caps_.memory_bytes != 0 &&
      (in_use > caps_.memory_bytes || desc.bytes > caps_.memory_bytes - in_use)) {
    return no_memory(desc);
  }
  WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
  descriptor.label = to_view(desc.name);
  descriptor.usage = usage_of(desc.use);
  descriptor.size = (desc.bytes + kBuffersWordBytes - 1) / kBuffersWordBytes * kBuffersWordBytes;
  const ErrorTrap trap;
  WGPUBuffer handle = api().DeviceCreateBuffer(device_, &descriptor);
  if (!handle || trap.caught()) {
    if (handle) api().BufferRelease(handle);
    if (errors_.lost()) return forward(std::move(errors_.take()).error());
    if (!handle || trap.out_of_memory()) return no_memory(desc);
    return fail(ErrorKind::kDevice, "Buffer \"%s\" (%s) could not be created: %s", desc.name.c_str(),
                format_bytes(desc.bytes).c_str(), trap.message().c_str());
  }
  const auto id = static_cast<uint32_t>(buffers_.size());
  // Dawn's own clearing is switched off (see the toggles), so the first submit clears what was not written by
  // then.
  const bool holds_garbage = api().is_dawn && desc.use != BufferUse::kReadback && desc.zeroed;
  buffers_.push_back({.handle = handle,
                      .bytes = descriptor.size,
                      .cleared_to = holds_garbage ? 0 : descriptor.size,
                      .use = desc.use,
                      .name = std::move(desc.name)});
  if (holds_garbage) uncleared_.push_back(id);
  ++counters_.buffers_created;
  counters_.buffer_bytes += descriptor.size;
  counters_.peak_buffer_bytes = std::max(counters_.peak_buffer_bytes, counters_.buffer_bytes);
  return Buffer(this, id, desc.bytes);
}

void NativeDevice::free_buffer(uint32_t id) {
  NativeBuffer& buffer = buffers_[id];
  for (const BindGroupId group : buffer.groups) {
    if (WGPUBindGroup handle = std::exchange(groups_[group], nullptr)) api().BindGroupRelease(handle);
  }
  api().BufferDestroy(buffer.handle);
  api().BufferRelease(buffer.handle);
  counters_.buffer_bytes -= buffer.bytes;
  std::erase(uncleared_, id);
  buffer = {};
}

Result<NativeBuffer*> NativeDevice::find_buffer(uint32_t id) {
  if (id >= buffers_.size() || !buffers_[id].handle) {
    return fail(ErrorKind::kInternal, "GPU buffer %u was freed or never made.", id);
  }
  return &buffers_[id];
}

Result<void> NativeDevice::check_range(const NativeBuffer& buffer, uint64_t offset, uint64_t bytes,
                                       const char* verb) {
  const char* name = buffer.name.c_str();
  const auto from = static_cast<unsigned long long>(offset);
  const auto count = static_cast<unsigned long long>(bytes);
  if (offset > buffer.bytes || bytes > buffer.bytes - offset) {
    return fail(ErrorKind::kInternal, "Cannot %s %llu bytes at %llu of buffer \"%s\", which has %llu.", verb,
                count, from, name, static_cast<unsigned long long>(buffer.bytes));
  }
  if (offset % kBuffersWordBytes != 0) {
    return fail(ErrorKind::kInternal, "Cannot %s buffer \"%s\" at %llu: not a multiple of 4.", verb, name,
                from);
  }
  return {};
}

// Skipped bytes must be zero before later ones are written, because what is cleared at the next submit is only the end.
void NativeDevice::clear_before(WGPUCommandEncoder encoder, NativeBuffer& buffer, uint64_t offset,
                                uint64_t bytes) {
  if (offset > buffer.cleared_to) {
    api().CommandEncoderClearBuffer(encoder, buffer.handle, buffer.cleared_to, offset - buffer.cleared_to);
  }
  buffer.cleared_to = std::max(buffer.cleared_to, offset + bytes);
}

// Precondition: inside the buffer, whole words.
void NativeDevice::write_piece(NativeBuffer& buffer, uint64_t offset, std::span<const uint8_t> bytes) {
  if (offset > buffer.cleared_to) {
    WGPUCommandEncoder encoder = api().DeviceCreateCommandEncoder(device_, nullptr);
    clear_before(encoder, buffer, offset, bytes.size());
    WGPUCommandBuffer commands = api().CommandEncoderFinish(encoder, nullptr);
    api().QueueSubmit(queue_, 1, &commands);
    api().CommandBufferRelease(commands);
    api().CommandEncoderRelease(encoder);
  }
  buffer.cleared_to = std::max(buffer.cleared_to, offset + bytes.size());
  api().QueueWriteBuffer(queue_, buffer.handle, offset, bytes.data(), bytes.size());
  counters_.upload_bytes += bytes.size();
}

Result<void> NativeDevice::write(const Buffer& buffer, uint64_t offset, std::span<const uint8_t> bytes) {
  DP_CHECK(status());
  DP_TRY(NativeBuffer* const target, find_buffer(buffer.id()));
  DP_CHECK(check_range(*target, offset, bytes.size(), "write"));
  if (bytes.size() % kBuffersWordBytes != 0) {
    return fail(ErrorKind::kInternal, "Cannot write %zu bytes to buffer \"%s\": not a multiple of 4.",
                bytes.size(), target->name.c_str());
  }
  if (bytes.empty()) return {};
  const AbortGuard guard;
  const ErrorTrap trap;
  write_piece(*target, offset, bytes);
  if (trap.caught()) return lost_or("Writing to buffer \"" + target->name + "\" failed: " + trap.message());
  return {};
}

void NativeDevice::on_mapped(WGPUMapAsyncStatus status, WGPUStringView message, void* userdata, void*) {
  const auto fired = from_userdata(userdata);
  fired->ok = status == WGPUMapAsyncStatus_Success;
  fired->message = from_view(message);
  fired->fired.store(true, std::memory_order_release);
}

// Maps the first `bytes` of a readback buffer, copies them out and unmaps. The wait is poll()'s.
Task<Result<void>> NativeDevice::map_and_copy(uint32_t id, uint64_t bytes, std::vector<uint8_t>& out) {
  auto state = std::make_shared<WaitState>();
  NativeWait wait = {.state = state};
  const Completion<bool> completion = wait.completion;
  {
    const ErrorTrap trap;
    WGPUBufferMapCallbackInfo callback = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
    callback.mode = WGPUCallbackMode_AllowProcessEvents;
    callback.callback = on_mapped;
    callback.userdata1 = to_userdata(state);
    buffers_[id].mapping = true;
    const AbortGuard guard;
    wait.future = api().BufferMapAsync(buffers_[id].handle, WGPUMapMode_Read, 0, bytes, callback);
    if (trap.caught() && !state->fired.load()) {
      buffers_[id].mapping = false;
      co_return lost_or("Reading back failed: " + trap.message());
    }
  }
  waits_.push_back(std::move(wait));
  co_await completion;
  buffers_[id].mapping = false;
  // A lost device may call back with success and unusable data: the flag decides.
  if (errors_.lost() || !state->ok) co_return lost_or("Reading back failed: " + state->message);
  const void* mapped = api().BufferGetConstMappedRange(buffers_[id].handle, 0, bytes);
  if (!mapped) co_return lost_or("Reading back failed: the mapped range is empty.");
  out.resize(bytes);
  std::memcpy(out.data(), mapped, bytes);
  api().BufferUnmap(buffers_[id].handle);
  co_return Result<void>();
}

Task<Result<std::vector<uint8_t>>> NativeDevice::read(const ReadbackRing& ring, uint32_t slot,
                                                      uint64_t bytes) {
  DP_CO_CHECK(status());
  if (slot >= ring.size()) {
    co_return fail(ErrorKind::kInternal, "Readback slot %u does not exist; the ring has %u.", slot,
                   ring.size());
  }
  const uint32_t id = ring.slot(slot).id();
  DP_CO_TRY(NativeBuffer* const source, find_buffer(id));
  DP_CO_CHECK(check_range(*source, 0, bytes, "read"));
  if (source->mapping) co_return fail(ErrorKind::kInternal, "Readback slot %u is being read already.", slot);
  std::vector<uint8_t> out;
  const uint64_t mapped_bytes = (bytes + kBuffersWordBytes - 1) / kBuffersWordBytes * kBuffersWordBytes;
  auto copying = map_and_copy(id, mapped_bytes, out);
  DP_CO_CHECK(co_await std::move(copying));
  out.resize(bytes);
  counters_.readback_bytes += bytes;
  co_return out;
}

}  // namespace doppler::gpu
