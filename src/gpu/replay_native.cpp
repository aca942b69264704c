// Replays plans: one command buffer a submit.
#include <chrono>

#include "gpu/guards_native.h"
#include "gpu/recorder_native.h"

namespace doppler::gpu {

// Buffers made since the last submit hold garbage beyond what was written (Dawn's clearing is off): zero it.
void NativeDevice::clear_new_buffers(WGPUCommandEncoder encoder) {
  for (const uint32_t id : uncleared_) {
    NativeBuffer& buffer = buffers_[id];
    if (buffer.cleared_to < buffer.bytes) {
      api().CommandEncoderClearBuffer(encoder, buffer.handle, buffer.cleared_to,
                                      buffer.bytes - buffer.cleared_to);
    }
    buffer.cleared_to = buffer.bytes;
  }
  uncleared_.clear();
}

// Ends a recording and releases the encoder. If recording or finishing failed there is nothing to submit.
Result<WGPUCommandBuffer> NativeDevice::finish(WGPUCommandEncoder encoder, Result<void> recorded,
                                               const ErrorTrap& trap) {
  WGPUCommandBuffer commands = nullptr;
  if (recorded) {
    commands = api().CommandEncoderFinish(encoder, nullptr);
    if (trap.caught()) recorded = lost_or("Recording work failed: " + trap.message());
  }
  api().CommandEncoderRelease(encoder);
  if (recorded) return commands;
  if (commands) api().CommandBufferRelease(commands);
  return forward(std::move(recorded).error());
}

// Takes the commands. wgpu-native would abort on commands whose recording failed: the caller has checked.
Result<void> NativeDevice::hand_over(WGPUCommandBuffer commands) {
  const AbortGuard guard;
  const ErrorTrap trap;
  api().QueueSubmit(queue_, 1, &commands);
  api().CommandBufferRelease(commands);
  if (trap.caught()) return lost_or("Submitting work failed: " + trap.message());
  return {};
}

Result<void> NativeDevice::submit_commands(WGPUCommandBuffer commands) {
  DP_CHECK(hand_over(commands));
  ++counters_.submits;
  return {};
}

Result<void> NativeDevice::submit(std::span<const Work> works, const ReadbackRequest* readback) {
  const auto start = std::chrono::steady_clock::now();
  DP_CHECK(status());
  if (readback) {
    if (readback->slot >= readback->ring->size()) {
      return fail(ErrorKind::kInternal, "Readback slot %u does not exist; the ring has %u.", readback->slot,
                  readback->ring->size());
    }
    DP_TRY(const NativeBuffer* const slot, find_buffer(readback->ring->slot(readback->slot).id()));
    if (slot->mapping) {
      return fail(ErrorKind::kInternal, "Readback slot %u is still being read.", readback->slot);
    }
  }
  const ErrorTrap trap;
  WGPUCommandEncoder encoder = api().DeviceCreateCommandEncoder(device_, nullptr);
  uint64_t dispatches = 0;
  const auto record = [&]() -> Result<void> {
    clear_new_buffers(encoder);
    Recorder recorder(*this, encoder);
    for (const Work& work : works) {
      if (work.rows == 0 || work.rows > work.plan->max_rows) {
        return fail(ErrorKind::kInternal, "Plan \"%s\" takes 1 to %u rows, not %u.", work.plan->name.c_str(),
                    work.plan->max_rows, work.rows);
      }
      for (uint32_t time = 0; time < work.times; ++time) DP_CHECK(recorder.replay(*work.plan, work.rows));
    }
    if (readback) {
      const BufferSlice& from = readback->from;
      DP_CHECK_WHILE(recorder.copy_range(from.buffer, from.offset, readback->ring->slot(readback->slot).id(),
                                         0, from.bytes),
                     "filling readback slot %u", readback->slot);
    }
    dispatches = recorder.dispatches();
    return {};
  };
  DP_TRY(WGPUCommandBuffer commands, finish(encoder, record(), trap));
  DP_CHECK(submit_commands(commands));
  counters_.dispatches += dispatches;
  counters_.submit_ns +=
      static_cast<uint64_t>((std::chrono::steady_clock::now() - start) / std::chrono::nanoseconds(1));
  return {};
}

}  // namespace doppler::gpu
