// Uploads of the native device, in one of two ways (Caps::uploads).
// Ring, if the GPU has memory of its own: the host copies into a ring of host-visible buffers, on several threads,
// while the GPU copies out of earlier ones. A slot is free again when the provider maps it, which it does once its copy
// is done. This sets the pace, and the ring is all the host memory that an upload takes.
// Queue, if GPU and host share memory: the queue's own writes, which Dawn makes straight into an idle buffer.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/parallel.h"
#include "gpu/device_native.h"
#include "gpu/guards_native.h"

namespace doppler::gpu {
namespace {

constexpr uint64_t kUploadsWordBytes = 4;  // WebGPU copies and writes whole words
constexpr uint64_t kSlotBytes = 16u << 20;
constexpr size_t kSlots = 4;
constexpr uint64_t kShareBytes = 1u << 20;     // of a thread at a time: some tenths of a millisecond
constexpr uint64_t kDirectBytes = 256u << 10;  // up to here the queue's own write costs less than a submit

// One write of wgpu-native costs as much host memory as the piece until the queue has taken it: measured, 1 GB in 4 MiB
// pieces with a wait after each needs no extra memory. Dawn is best at 4-64 MiB (1.0-1.4 GB/s on lavapipe).
constexpr uint64_t kWgpuPieceBytes = 4u << 20;
constexpr uint64_t kDawnPieceBytes = 16u << 20;
constexpr uint64_t kDawnWaitBytes = 64u << 20;  // a wait after so many

uint64_t nanoseconds_since(std::chrono::steady_clock::time_point start) {
  return static_cast<uint64_t>((std::chrono::steady_clock::now() - start) / std::chrono::nanoseconds(1));
}

void copy_parallel(uint8_t* to, std::span<const uint8_t> from) {
  parallel_for((from.size() + kShareBytes - 1) / kShareBytes, [&](size_t i) {
    const size_t begin = i * kShareBytes;
    std::memcpy(to + begin, from.data() + begin, std::min<size_t>(kShareBytes, from.size() - begin));
  });
}

}  // namespace

Result<void> NativeDevice::add_staging_slot() {
  WGPUBufferDescriptor descriptor = WGPU_BUFFER_DESCRIPTOR_INIT;
  descriptor.label = to_view("staging");
  descriptor.usage = WGPUBufferUsage_MapWrite | WGPUBufferUsage_CopySrc;
  descriptor.size = kSlotBytes;
  descriptor.mappedAtCreation = 1;
  const ErrorTrap trap;
  StagingSlot slot;
  slot.handle = api().DeviceCreateBuffer(device_, &descriptor);
  if (!slot.handle || trap.caught()) {
    if (slot.handle) api().BufferRelease(slot.handle);
    return lost_or("There is no host memory for uploads (" + format_bytes(kSlotBytes) +
                   "): " + trap.message());
  }
  staging_.push_back(std::move(slot));
  return {};
}

// The next slot of the ring, mapped.
Task<Result<NativeDevice::StagingSlot*>> NativeDevice::next_staging_slot() {
  if (staging_.size() < kSlots) {
    DP_CO_CHECK(add_staging_slot());
    co_return &staging_.back();
  }
  const size_t index = next_staging_++ % kSlots;
  if (staging_[index].mapping) {
    const Completion<bool> completion = staging_[index].mapped;
    co_await completion;
    const std::shared_ptr<WaitState> state = std::exchange(staging_[index].mapping, nullptr);
    if (errors_.lost() || !state->ok)
      co_return forward(std::move(lost_or("Mapping memory for an upload failed: " + state->message)).error());
  }
  co_return &staging_[index];
}

// Copies the first `bytes` of the slot to the buffer, and asks for the slot back.
Result<void> NativeDevice::send(StagingSlot& slot, uint32_t id, uint64_t offset, uint64_t bytes) {
  NativeBuffer& target = buffers_[id];
  const AbortGuard guard;
  const ErrorTrap trap;
  api().BufferUnmap(slot.handle);
  WGPUCommandEncoder encoder = api().DeviceCreateCommandEncoder(device_, nullptr);
  clear_before(encoder, target, offset, bytes);
  api().CommandEncoderCopyBufferToBuffer(encoder, slot.handle, 0, target.handle, offset, bytes);
  DP_TRY(WGPUCommandBuffer commands, finish(encoder, {}, trap));
  DP_CHECK(hand_over(commands));
  counters_.upload_bytes += bytes;

  slot.mapping = std::make_shared<WaitState>();
  NativeWait wait = {.state = slot.mapping};
  slot.mapped = wait.completion;
  WGPUBufferMapCallbackInfo callback = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.callback = on_mapped;
  callback.userdata1 = to_userdata(slot.mapping);
  wait.future = api().BufferMapAsync(slot.handle, WGPUMapMode_Write, 0, kSlotBytes, callback);
  waits_.push_back(std::move(wait));
  if (trap.caught()) return lost_or("Uploading to buffer \"" + target.name + "\" failed: " + trap.message());
  return {};
}

Task<Result<void>> NativeDevice::upload_through_ring(uint32_t id, uint64_t offset,
                                                     std::span<const uint8_t> bytes) {
  for (uint64_t done = 0; done < bytes.size();) {
    const uint64_t count = std::min<uint64_t>(kSlotBytes, bytes.size() - done);
    auto waiting = next_staging_slot();
    DP_CO_TRY(StagingSlot* const slot, co_await std::move(waiting));
    auto* memory = static_cast<uint8_t*>(api().BufferGetMappedRange(slot->handle, 0, kSlotBytes));
    if (!memory) co_return lost_or("Mapping memory for an upload failed: the mapped range is empty.");
    const auto start = std::chrono::steady_clock::now();
    copy_parallel(memory, bytes.subspan(done, count));
    counters_.upload_copy_ns += nanoseconds_since(start);
    DP_CO_CHECK(send(*slot, id, offset + done, count));
    done += count;
  }
  co_return Result<void>();
}

Task<Result<void>> NativeDevice::upload_by_queue(const Buffer& buffer, uint64_t offset,
                                                 std::span<const uint8_t> bytes) {
  const uint64_t piece_bytes = api().is_dawn ? kDawnPieceBytes : kWgpuPieceBytes;
  const uint64_t wait_bytes = api().is_dawn ? kDawnWaitBytes : kWgpuPieceBytes;
  for (uint64_t done = 0; done < bytes.size();) {
    const uint64_t count = std::min<uint64_t>(piece_bytes, bytes.size() - done);
    const auto start = std::chrono::steady_clock::now();
    DP_CO_CHECK(write(buffer, offset + done, bytes.subspan(done, count)));
    counters_.upload_copy_ns += nanoseconds_since(start);
    done += count;
    unwaited_upload_bytes_ += count;
    if (unwaited_upload_bytes_ < wait_bytes) continue;
    unwaited_upload_bytes_ = 0;
    {
      const AbortGuard guard;
      api().QueueSubmit(queue_, 0, nullptr);  // starts the copies: without it they pile up in host memory
    }
    auto waiting = idle();
    DP_CO_CHECK(co_await std::move(waiting));
  }
  co_return Result<void>();
}

Task<Result<void>> NativeDevice::upload(const Buffer& buffer, uint64_t offset,
                                        std::span<const uint8_t> bytes) {
  DP_CO_CHECK(status());
  DP_CO_TRY(const NativeBuffer* const target, find_buffer(buffer.id()));
  DP_CO_CHECK(check_range(*target, offset, bytes.size(), "upload"));
  const std::span<const uint8_t> words = bytes.first(bytes.size() / kUploadsWordBytes * kUploadsWordBytes);
  if (caps_.uploads == UploadWay::kRing && words.size() > kDirectBytes) {
    auto uploading = upload_through_ring(buffer.id(), offset, words);
    DP_CO_CHECK(co_await std::move(uploading));
  } else {
    auto uploading = upload_by_queue(buffer, offset, words);
    DP_CO_CHECK(co_await std::move(uploading));
  }
  if (words.size() < bytes.size()) {
    uint8_t last[kUploadsWordBytes] = {};
    std::memcpy(last, bytes.data() + words.size(), bytes.size() - words.size());
    DP_CO_CHECK(write(buffer, offset + words.size(), last));
  }
  co_return Result<void>();
}

// The memory goes; a map that is still pending ends with an error that no one waits for.
void NativeDevice::release_staging() {
  for (const StagingSlot& slot : staging_) {
    api().BufferDestroy(slot.handle);
    api().BufferRelease(slot.handle);
  }
  staging_.clear();
  next_staging_ = 0;
}

Task<Result<void>> NativeDevice::upload_stream(const Buffer&, uint64_t, uint32_t stream, uint64_t, uint64_t) {
  co_return fail(ErrorKind::kUnsupported,
                 "Stream %u cannot be uploaded: only a browser has streams, here files are "
                 "mapped.",
                 stream);
}

}  // namespace doppler::gpu
