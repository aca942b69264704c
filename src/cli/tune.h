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
};
Result<Tuned> tune_model(const ModelFlags& flags, const bench::TunerSettings& settings);
// Into the user's cache, beside what other models left there; `batch`: the steps of a submit that won, if measured.
Result<void> keep(const Tuned& tuned, std::optional<uint32_t> batch);

Result<std::unique_ptr<gpu::Device>> open_device(const ModelFlags& flags);

}  // namespace doppler::cli
