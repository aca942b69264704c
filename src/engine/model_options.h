// The public options and descriptions (doppler/doppler.h) in the engine's terms, shared by the native API and the
// WebAssembly exports.
#pragma once

#include "doppler/doppler.h"
#include "engine/loaded_model.h"
#include "model/load_estimate.h"

namespace doppler::engine {

// LoadOptions::draft. Error: no such word.
Result<model::Drafting> drafting_of(std::string_view word);
// LoadOptions::pooling, which is not empty. Error: no such word.
Result<formats::Pooling> pooling_of(std::string_view kind);
// Errors: a lane, cache format, rule or draft that is not known.
Result<model::RunnerOptions> runner_options(const LoadOptions& options);
ModelInfo describe(const LoadedModel& loaded, const gpu::Device& device);
ExpertPaging paging_of(const LoadedModel& loaded);
// The device's counts since the model was loaded.
Counters counters_since_load(const LoadedModel& loaded, const gpu::Device& device);

}  // namespace doppler::engine
