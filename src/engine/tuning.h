// The results of tuning for a model: the table that fits it, and the cadence it decodes with. Read next:
// kernels/tuning.h (the table), tuning_file_native.h (where the native build keeps it).
#pragma once

#include <string>

#include "engine/loaded_model.h"
#include "kernels/tuning.h"

namespace doppler::engine {

kernels::TuningKey tuning_key(const gpu::Caps& caps, const model::RunnerOptions& options);
// 16 hexadecimal digits over names, types and shapes of all tensors: models of one shape share a cadence.
std::string model_key(const formats::Checkpoint& checkpoint);
// Allows the lane persistent where tuning found it faster for this model, beside what the lane fast allows.
void allow_tuned_lane(const formats::Checkpoint& checkpoint, kernels::Policy& policy);
// Decode steps of a submit: what tuning found for this model, or model::kDefaultBatch.
uint32_t default_batch(const LoadedModel& loaded);

}  // namespace doppler::engine
