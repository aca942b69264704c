// Memory, submits, waiting and the error slot of the browser's device.
#include "gpu/device_web.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace doppler::gpu {
namespace {

constexpr uint64_t kWordBytes = 4;  // WebGPU copies and writes whole words
// A write copies into the browser's own staging memory: pieces of this size, and a wait after so many bytes,
// keep that bounded (measured: docs/design/web.md).
constexpr uint64_t kPieceBytes = 8u << 20;
constexpr uint64_t kWaitBytes = 64u << 20;

unsigned long long printed(uint64_t number) { return number; }

}  // namespace

Result<void> WebDevice::status() {
  if (!lost_sentence_.empty()) return fail(ErrorKind::kDevice, "%s", lost_sentence_.c_str());
  if (!first_error_) return {};
  Error error = std::move(*first_error_);
  first_error_.reset();
  return forward(std::move(error));
}

void WebDevice::put_error(ErrorKind kind, std::string sentence) {
  if (!first_error_) first_error_.emplace(kind, std::move(sentence));
}

void WebDevice::lose(std::string sentence) {
  if (lost_sentence_.empty()) lost_sentence_ = std::move(sentence);
}

Task<Result<Buffer>> WebDevice::create_buffer(BufferDesc desc) {
  DP_CO_CHECK(status());
  if (desc.bytes == 0) co_return fail(ErrorKind::kInternal, "Buffer \"%s\" has no bytes.", desc.name.c_str());
  if (desc.bytes > caps_.max_buffer_bytes) {
    co_return fail(ErrorKind::kOutOfMemory,
                   "Buffer \"%s\" (%s) is larger than %s allows for one buffer (%s).", desc.name.c_str(),
                   format_bytes(desc.bytes).c_str(), caps_.adapter.c_str(),
                   format_bytes(caps_.max_buffer_bytes).c_str());
  }
  const uint64_t bytes = (desc.bytes + kWordBytes - 1) / kWordBytes * kWordBytes;
  const auto id = static_cast<uint32_t>(buffers_.size());
  buffers_.push_back({.bytes = bytes, .use = desc.use, .name = desc.name});
  const HostCall call;
  host_gpu_buffer(call.ticket(), id, static_cast<double>(bytes), static_cast<uint32_t>(desc.use),
                  desc.name.data(), static_cast<uint32_t>(desc.name.size()));
  const HostAnswer answer = co_await call.answer();
  if (!answer.ok()) {
    buffers_[id] = {};
    DP_CO_CHECK(status());
    if (answer.status != HostStatus::kOutOfMemory) {
      co_return fail(ErrorKind::kDevice, "Buffer \"%s\" (%s) could not be created: %s", desc.name.c_str(),
                     format_bytes(desc.bytes).c_str(), answer.text().c_str());
    }
    co_return fail(ErrorKind::kOutOfMemory,
                   "There is no memory for buffer \"%s\" (%s) on %s: Doppler uses %s already.",
                   desc.name.c_str(), format_bytes(desc.bytes).c_str(), caps_.adapter.c_str(),
                   format_bytes(counters_.buffer_bytes).c_str());
  }
  ++counters_.buffers_created;
  counters_.buffer_bytes += bytes;
  counters_.peak_buffer_bytes = std::max(counters_.peak_buffer_bytes, counters_.buffer_bytes);
  co_return Buffer(this, id, desc.bytes);
}

void WebDevice::free_buffer(uint32_t id) {
  host_gpu_free(id);
  counters_.buffer_bytes -= buffers_[id].bytes;
  buffers_[id] = {};
}

Result<WebDevice::WebBuffer*> WebDevice::find_buffer(uint32_t id) {
  if (id >= buffers_.size() || buffers_[id].bytes == 0) {
    return fail(ErrorKind::kInternal, "GPU buffer %u was freed or never made.", id);
  }
  return &buffers_[id];
}

Result<void> WebDevice::check_range(const WebBuffer& buffer, uint64_t offset, uint64_t bytes,
                                    const char* verb) const {
  if (offset > buffer.bytes || bytes > buffer.bytes - offset) {
    return fail(ErrorKind::kInternal, "Cannot %s %llu bytes at %llu of buffer \"%s\", which has %llu.", verb,
                printed(bytes), printed(offset), buffer.name.c_str(), printed(buffer.bytes));
  }
  if (offset % kWordBytes != 0) {
    return fail(ErrorKind::kInternal, "Cannot %s buffer \"%s\" at %llu: not a multiple of 4.", verb,
                buffer.name.c_str(), printed(offset));
  }
  return {};
}

Result<void> WebDevice::write(const Buffer& buffer, uint64_t offset, std::span<const uint8_t> bytes) {
  DP_CHECK(status());
  DP_TRY(const WebBuffer* const target, find_buffer(buffer.id()));
  DP_CHECK(check_range(*target, offset, bytes.size(), "write"));
  if (bytes.size() % kWordBytes != 0) {
    return fail(ErrorKind::kInternal, "Cannot write %zu bytes to buffer \"%s\": not a multiple of 4.",
                bytes.size(), target->name.c_str());
  }
  if (bytes.empty()) return {};
  host_gpu_write(buffer.id(), static_cast<double>(offset), bytes.data(), static_cast<uint32_t>(bytes.size()));
  counters_.upload_bytes += bytes.size();
  return {};
}

Task<Result<void>> WebDevice::upload(const Buffer& buffer, uint64_t offset, std::span<const uint8_t> bytes) {
  const uint64_t whole_words = bytes.size() / kWordBytes * kWordBytes;
  for (uint64_t done = 0; done < whole_words;) {
    const uint64_t count = std::min(kPieceBytes, whole_words - done);
    DP_CO_CHECK(write(buffer, offset + done, bytes.subspan(done, count)));
    done += count;
    unwaited_upload_bytes_ += count;
    if (unwaited_upload_bytes_ < kWaitBytes) continue;
    unwaited_upload_bytes_ = 0;
    auto waiting = idle();
    DP_CO_CHECK(co_await std::move(waiting));
  }
  if (whole_words < bytes.size()) {
    uint8_t last[kWordBytes] = {};
    std::memcpy(last, bytes.data() + whole_words, bytes.size() - whole_words);
    DP_CO_CHECK(write(buffer, offset + whole_words, last));
  }
  co_return Result<void>();
}

Task<Result<void>> WebDevice::upload_stream(const Buffer& buffer, uint64_t offset, uint32_t stream,
                                            uint64_t stream_offset, uint64_t bytes) {
  DP_CO_CHECK(status());
  DP_CO_TRY(const WebBuffer* const target, find_buffer(buffer.id()));
  DP_CO_CHECK(check_range(*target, offset, bytes, "stream into"));
  const HostCall call;
  host_gpu_stream(call.ticket(), buffer.id(), static_cast<double>(offset), stream,
                  static_cast<double>(stream_offset), static_cast<double>(bytes));
  const HostAnswer answer = co_await call.answer();
  if (!answer.ok()) co_return fail(ErrorKind::kIo, "%s", answer.text().c_str());
  counters_.upload_bytes += bytes;
  co_return Result<void>();
}

Result<WebDevice::WebBuffer*> WebDevice::find_slot(const ReadbackRing& ring, uint32_t slot) {
  if (slot >= ring.size()) {
    return fail(ErrorKind::kInternal, "Readback slot %u does not exist; the ring has %u.", slot, ring.size());
  }
  DP_TRY(WebBuffer* const buffer, find_buffer(ring.slot(slot).id()));
  if (buffer->reading) return fail(ErrorKind::kInternal, "Readback slot %u is still being read.", slot);
  return buffer;
}

Result<void> WebDevice::submit(std::span<const Work> works, const ReadbackRequest* readback) {
  const auto start = std::chrono::steady_clock::now();
  DP_CHECK(status());
  std::vector<HostWork> host_works;
  uint64_t dispatches = 0;
  for (const Work& work : works) {
    if (work.rows == 0 || work.rows > work.plan->max_rows) {
      return fail(ErrorKind::kInternal, "Plan \"%s\" takes 1 to %u rows, not %u.", work.plan->name.c_str(),
                  work.plan->max_rows, work.rows);
    }
    const std::vector<uint32_t>& words = work.plan->words;
    host_works.push_back({.words = words.data(),
                          .word_count = static_cast<uint32_t>(words.size()),
                          .rows = work.rows,
                          .times = work.times});
    dispatches += uint64_t{work.plan->dispatch_count()} * work.times;
  }
  uint32_t from = kNoReadback, to = 0;
  BufferSlice slice;
  if (readback) {
    slice = readback->from;
    DP_TRY(const WebBuffer* const source, find_buffer(slice.buffer));
    DP_TRY(const WebBuffer* const target, find_slot(*readback->ring, readback->slot));
    DP_CHECK_WHILE(check_range(*source, slice.offset, slice.bytes, "copy"), "filling readback slot %u",
                   readback->slot);
    DP_CHECK_WHILE(check_range(*target, 0, slice.bytes, "overwrite"), "filling readback slot %u",
                   readback->slot);
    from = slice.buffer;
    to = readback->ring->slot(readback->slot).id();
  }
  host_gpu_submit(host_works.data(), static_cast<uint32_t>(host_works.size()), from,
                  static_cast<double>(slice.offset), to, static_cast<double>(slice.bytes));
  ++counters_.submits;
  counters_.dispatches += dispatches;
  counters_.submit_ns +=
      static_cast<uint64_t>((std::chrono::steady_clock::now() - start) / std::chrono::nanoseconds(1));
  return {};
}

Task<Result<std::vector<uint8_t>>> WebDevice::read(const ReadbackRing& ring, uint32_t slot, uint64_t bytes) {
  DP_CO_CHECK(status());
  DP_CO_TRY(WebBuffer* const source, find_slot(ring, slot));
  DP_CO_CHECK(check_range(*source, 0, bytes, "read"));
  const uint32_t id = ring.slot(slot).id();
  source->reading = true;
  const HostCall call;
  host_gpu_read(call.ticket(), id, static_cast<uint32_t>((bytes + kWordBytes - 1) / kWordBytes * kWordBytes));
  HostAnswer answer = co_await call.answer();
  buffers_[id].reading = false;
  DP_CO_CHECK(status());
  if (!answer.ok()) co_return fail(ErrorKind::kDevice, "Reading back failed: %s", answer.text().c_str());
  answer.bytes.resize(bytes);
  counters_.readback_bytes += bytes;
  co_return std::move(answer.bytes);
}

Task<Result<void>> WebDevice::idle() {
  DP_CO_CHECK(status());
  const HostCall call;
  host_gpu_idle(call.ticket());
  const HostAnswer answer = co_await call.answer();
  DP_CO_CHECK(status());
  if (!answer.ok())
    co_return fail(ErrorKind::kDevice, "Waiting for the GPU failed: %s", answer.text().c_str());
  co_return Result<void>();
}

Task<Result<std::vector<uint64_t>>> WebDevice::time_commands(const Plan& plan, uint32_t) {
  co_return fail(ErrorKind::kUnsupported,
                 "Plan \"%s\" cannot be timed here: times of single commands are a tool of the native build.",
                 plan.name.c_str());
}

Task<Result<uint64_t>> WebDevice::time_replays(const Plan& plan, uint32_t, uint32_t) {
  co_return fail(ErrorKind::kUnsupported,
                 "Plan \"%s\" cannot be timed here: that is a tool of the native build.", plan.name.c_str());
}

void WebDevice::poll(uint64_t) {}  // the host's event loop calls us

}  // namespace doppler::gpu
