#include "engine/estimate_native.h"

#include "engine/model_options.h"
#include "formats/file_set_native.h"

namespace doppler::engine {

Result<AdapterSources> adapter_sources(const LoadOptions& options) {
  AdapterSources out{.files = {}, .slots = options.adapter_slots, .rank = options.adapter_rank};
  for (const AdapterFile& file : options.adapters) {
    DP_TRY(std::unique_ptr<formats::FileSet> files, formats::open_file_set(file.path));
    out.files.push_back({.files = std::move(files), .name = file.name, .scale = file.scale});
  }
  return out;
}

Result<model::LoadEstimate> estimate_load(formats::Checkpoint& checkpoint, const LoadOptions& options,
                                          const gpu::Caps& caps) {
  DP_TRY(model::RunnerOptions runner, runner_options(options));
  DP_TRY(AdapterSources adapters, adapter_sources(options));
  auto opening = open_adapters(std::move(adapters), checkpoint, runner.adapters);
  opening.start();  // files wait for nothing here
  DP_CHECK(opening.take());
  return model::estimate_load(checkpoint, std::move(runner), caps);
}

}  // namespace doppler::engine
