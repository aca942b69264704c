// The memory that a load with these options takes, for `--dry-run`.
#pragma once

#include "doppler/doppler.h"
#include "engine/adapters.h"
#include "model/load_estimate.h"

namespace doppler::engine {

// Opens the files of LoadOptions::adapters.
Result<AdapterSources> adapter_sources(const LoadOptions& options);

// The load on such a device, with its adapters. Errors: those of runner_options() and open_adapters(), and that this
// build cannot run the model.
Result<model::LoadEstimate> estimate_load(formats::Checkpoint& checkpoint, const LoadOptions& options,
                                          const gpu::Caps& caps);

}  // namespace doppler::engine
