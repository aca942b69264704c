// Tuning a named model and keeping the result: for the verbs tune and squeeze.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "bench/tuner.h"
#include "cli/common.h"

namespace doppler::cli {

struct Tuned {
  kernels::TuningKey key;
  std::string model_key;  // engine/tuning.h
  std::string path;       // of the cache file
  bench::TunerResult result;
  std::optional<bool> persistent;  // whether decode's layers were faster in one dispatch; none: not asked
};
Result<Tuned> tune_model(const ModelFlags& flags, const bench::TunerSettings& settings);
// Stores the tuning in the user's cache, beside that of other models. `batch`: the steps of a submit that won, if they
// were measured.
Result<void> keep(const Tuned& tuned, std::optional<uint32_t> batch);

// Measures the model's decode steps in the lanes fast and persistent, if --lane said so and the device is a GPU. The
// outcome is an attempt like any other; a lane that cannot be used is reported with its reason. Errors: loading or
// measuring the lane fast failed.
Result<void> try_persistent(const ModelFlags& flags, gpu::AdapterType device, Tuned& tuned);

Result<std::unique_ptr<gpu::Device>> open_device(const ModelFlags& flags);

}  // namespace doppler::cli
