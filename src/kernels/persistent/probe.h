// Measures how many workgroups are co-resident on a device: WebGPU promises nothing about it. Each workgroup of a large
// dispatch arrives at a counter and waits for the others, for a bounded time.
#pragma once

#include "base/result.h"
#include "base/task.h"
#include "gpu/device.h"
#include "gpu/recording_device.h"

namespace doppler::kernels {

// The number of co-resident workgroups of persistent_threads() invocations and of all available workgroup memory:
// persistent_layers may have as many as far as these two go. It also takes registers, which no kernel but itself can
// tell: counting with it (kExchangeModeProbe) may give less. At least 1.
Task<Result<uint32_t>> count_co_resident(gpu::Device& device);

// The answers of a device that runs nothing (gpu/recording_device.h), so that count_co_resident() and the kernel's own
// counting (model/device_model_persistent.cpp) both say `groups`.
std::vector<gpu::KnownWord> words_of_co_resident_groups(uint32_t groups);

}  // namespace doppler::kernels
