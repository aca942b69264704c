// The deal of a model's layers to several devices, before anything is made on them. `--dry-run` prints it. Each device
// is then loaded with the common options and its share of the layers (RunnerOptions::part), and split_sequence_native.h
// carries their steps out. Read next: memory_estimate.h.
#pragma once

#include <span>
#include <vector>

#include "model/load_estimate.h"

namespace doppler::model {

// Consecutive layers for each device, at least one, so that the fullest device is as empty as possible. layers: the
// bytes of each; rooms: the memory of each device, no more devices than layers.
std::vector<formats::LayerRange> deal_layers(std::span<const uint64_t> layers,
                                             std::span<const uint64_t> rooms);

// Whether the whole model could lie on each device, with the cache of one sequence.
struct WholeModel {
  bool fits = false, writes_text = false, has_experts = false;
};
Result<WholeModel> whole_model(const formats::Checkpoint& checkpoint, const RunnerOptions& options,
                               std::span<const gpu::Caps* const> devices);

struct SplitShare {
  formats::LayerRange layers;
  MemoryEstimate memory;
};
struct SplitPlan {
  RunnerOptions options;  // of all devices, filled in, but for `part`
  formats::ModelConfig config;
  std::vector<SplitShare> shares;  // a device each
  Result<void> fits;               // error: a device has no room for its share
};
// Errors: this build cannot run the model, or not in parts; options that do not go with several devices.
Result<SplitPlan> plan_split(const formats::Checkpoint& checkpoint, RunnerOptions options,
                             std::span<const gpu::Caps* const> devices);

}  // namespace doppler::model
