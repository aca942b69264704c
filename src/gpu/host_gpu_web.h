// The GPU functions that JavaScript provides, web/gpu_host.mjs. Objects are named by numbers that the C++
// side gives out; 64-bit numbers travel as doubles. A function with a ticket answers later (base/host_web.h);
// an error in the other functions arrives as an error of the device. An instance of the module has one device.
#pragma once

#include <cstdint>

#include "base/host_web.h"

namespace doppler::gpu {

// Answers with a JSON object: open_web.cpp reads it.
DP_HOST_IMPORT("dp_gpu_open") void host_gpu_open(uint32_t ticket);
DP_HOST_IMPORT("dp_gpu_close") void host_gpu_close();

// `use` is a BufferUse. Answers once the device has the memory, or has none.
DP_HOST_IMPORT("dp_gpu_buffer")
void host_gpu_buffer(uint32_t ticket, uint32_t id, double bytes, uint32_t use, const char* name,
                     uint32_t name_bytes);
DP_HOST_IMPORT("dp_gpu_free") void host_gpu_free(uint32_t id);
// `json`: {"label", "wgsl", "layout": [BindKind ...], "constants": {name: value}}.
DP_HOST_IMPORT("dp_gpu_pipeline")
void host_gpu_pipeline(uint32_t ticket, uint32_t id, const char* json, uint32_t json_bytes);
// `bindings`: for each its buffer, offset and bytes.
DP_HOST_IMPORT("dp_gpu_group")
void host_gpu_group(uint32_t id, uint32_t pipeline, const double* bindings, uint32_t count);

DP_HOST_IMPORT("dp_gpu_write")
void host_gpu_write(uint32_t buffer, double offset, const uint8_t* data, uint32_t bytes);
// Copies a file of the host (web/web_file_set.h) into the buffer, without passing through WebAssembly memory.
DP_HOST_IMPORT("dp_gpu_stream")
void host_gpu_stream(uint32_t ticket, uint32_t buffer, double offset, uint32_t stream, double stream_offset,
                     double bytes);

struct HostWork {
  const uint32_t* words;  // of the plan (plan.h)
  uint32_t word_count;
  uint32_t rows;
  uint32_t times;
};
inline constexpr uint32_t kNoReadback = UINT32_MAX;
// Replays the works in one command buffer, then copies from `from` (a buffer, or kNoReadback) to `to`.
DP_HOST_IMPORT("dp_gpu_submit")
void host_gpu_submit(const HostWork* works, uint32_t count, uint32_t from, double from_offset, uint32_t to,
                     double bytes);
// Answers with the first `bytes` of a readback buffer.
DP_HOST_IMPORT("dp_gpu_read") void host_gpu_read(uint32_t ticket, uint32_t buffer, uint32_t bytes);
DP_HOST_IMPORT("dp_gpu_idle") void host_gpu_idle(uint32_t ticket);

}  // namespace doppler::gpu
