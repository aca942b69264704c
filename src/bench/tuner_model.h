// A real model for the tuner: its first layers, as many as it takes to meet every kind of weight once, loaded anew for
// each candidate. Read next: tuner.h, model/device_model.h (RunnerOptions::layers).
#pragma once

#include "bench/tuner.h"
#include "engine/loaded_model.h"

namespace doppler::bench {

// The number of first layers that hold every type and shape of tensor once: a few where weights mix formats.
uint32_t layers_that_differ(const formats::Checkpoint& checkpoint);

// `device` and `checkpoint` must outlive the trial maker. options.policy.tuning is not used.
std::unique_ptr<TrialMaker> model_trials(gpu::Device& device, const formats::Checkpoint& checkpoint,
                                         model::RunnerOptions options);

}  // namespace doppler::bench
