// A real model for the tuner: its first layers, as many as it takes to meet every kind of weight once, loaded anew for
// each candidate. Read next: tuner.h, model/plan_runner.h (RunnerOptions::layers).
#pragma once

#include "bench/tuner.h"
#include "engine/loaded_model.h"

namespace doppler::bench {

// Layers after which no tensor of another type or shape comes: of weights that mix formats, a few.
uint32_t layers_that_differ(const formats::Checkpoint& checkpoint);

// `device` and `checkpoint` must outlive it. options.policy.tuning is not used.
std::unique_ptr<TrialMaker> model_trials(gpu::Device& device, const formats::Checkpoint& checkpoint,
                                         model::RunnerOptions options);

}  // namespace doppler::bench
