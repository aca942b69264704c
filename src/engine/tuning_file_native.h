// The tuning of a device in the user's cache: one small JSON file for each key (kernels/tuning.h), shared by all
// models. A file that is damaged, or was made with another key, is reported in one sentence and not used.
#pragma once

#include <memory>
#include <string>

#include "kernels/tuning.h"

namespace doppler::engine {

// <cache_dir>/tuning/<key_digest>.json
std::string tuning_path(const std::string& cache_dir, const kernels::TuningKey& key);
// Null: no cache_dir, no file, or one that is not used (a warning in the log says why).
std::shared_ptr<const kernels::TuningTable> load_tuning(const std::string& cache_dir,
                                                        const kernels::TuningKey& key);
// Replaces the file in one step, so that no reader finds half a file. Errors: the folder or file cannot be written.
Result<void> save_tuning(const std::string& cache_dir, const kernels::TuningKey& key,
                         const kernels::TuningTable& table);
// True: there was a file, and it is gone.
Result<bool> forget_tuning(const std::string& cache_dir, const kernels::TuningKey& key);

}  // namespace doppler::engine
