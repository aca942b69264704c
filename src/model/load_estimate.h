// The effects of loading a model with given options on a device, before anything is made on it: the options with their
// defaults filled in, the layout of the weights, the memory. DeviceModel::load() begins with it; `--dry-run` prints it.
#pragma once

#include "formats/architectures/config.h"
#include "formats/checkpoint.h"
#include "formats/quant/repack.h"
#include "gpu/caps.h"
#include "model/device_model.h"
#include "model/memory_estimate.h"

namespace doppler::model {

// Sets context and prefill chunk, if they are 0, to the usual ones, with fewer rows a chunk if the device binds no
// more. A context beyond the model's training gives a warning, and is cut if formats::ends_at_ctx_len().
void fill_defaults(RunnerOptions& options, const formats::ModelConfig& config, const gpu::Caps& caps);
// Tells of layers in the file that config.json does not count.
void tell_of_layers_left_out(const formats::Checkpoint& checkpoint, const formats::ModelConfig& config);
// Tells that an encoder's folder does not say how its states are pooled, so that the mean is taken.
void tell_of_guessed_pooling(const formats::Checkpoint& checkpoint, const formats::ModelConfig& config);
// SequenceRunner::window of a model that has windows. Positions before them are masked, but read: they must be of the
// same sequence, since zero times another's infinity is not zero.
uint32_t read_positions(const formats::ModelConfig& config);
// CacheLengths::ring_len of a model with these options.
uint32_t ring_len_of(const RunnerOptions& options, const formats::ModelConfig& config);
// The memory for these options, with such cache lengths.
MemoryEstimate estimate_of(const RunnerOptions& options, const formats::ModelConfig& config,
                           const formats::Checkpoint& checkpoint, const gpu::Caps& caps,
                           CacheLengths lengths);
// RunnerOptions::layer_table_on_host as it will be: also where the device has no memory for the table, which is told.
// Errors: asked for, and the model has none, or this build keeps all weights on the device.
Result<bool> choose_layer_table(const RunnerOptions& options, const formats::ModelConfig& config,
                                const formats::Checkpoint& checkpoint, const gpu::Caps& caps);
// With RunnerOptions::max_sequences: sets the blocks of the cache, and, if pool_tokens is 0, as many as fit the device.
// Errors: more slots than kMaxSequences; a pool smaller than one block.
Result<void> fill_pool(RunnerOptions& options, const formats::ModelConfig& config,
                       const formats::Checkpoint& checkpoint, const gpu::Caps& caps);
// Sets the number of experts of each layer that lie on the device at a time (RunnerOptions::expert_slots).
// Errors: a budget (RunnerOptions::expert_bytes) for a model without experts, of the lane persistent, or too small for
// the experts of one token.
Result<void> choose_expert_slots(RunnerOptions& options, const formats::ModelConfig& config,
                                 const formats::Checkpoint& checkpoint, const gpu::Caps& caps);
// The layout of weights for this device and lane.
formats::LayoutPolicy weight_layout_policy(const gpu::Caps& caps, const kernels::Policy& policy);

// Takes the next-token layer off the config if it will not draft, and gives the reason: "" if it may. Whether its
// kernels exist shows when plans are recorded. Error: the options demand it, and the reason speaks against it.
Result<std::string> choose_drafting(const RunnerOptions& options, formats::ModelConfig& config);

struct LoadEstimate {
  formats::ModelConfig config;
  uint32_t ctx_len = 0, chunk = 0;
  kernels::CacheFormat cache_format = kernels::CacheFormat::kF16;
  MemoryEstimate memory;
  uint64_t adapter_bytes = 0;  // of memory.weight_bytes
  uint32_t expert_slots = 0;   // of a layer; 0: all experts
  bool layer_table_on_host = false;
};
// Errors: this build cannot run the model. Whether the memory is there is check_memory()'s to say.
Result<LoadEstimate> estimate_load(const formats::Checkpoint& checkpoint, RunnerOptions options,
                                   const gpu::Caps& caps);

}  // namespace doppler::model
