// doppler tune: measures the kernels' variants and constants on this device for a model's shapes and keeps the winners.
// The search: bench/tuner.h; the file: engine/tuning_file_native.h.
#include "cli/tune.h"

#include <cstdio>

#include "bench/tuner_model.h"
#include "cli/measure.h"
#include "cli/verbs.h"
#include "engine/model_options.h"
#include "engine/tuning.h"
#include "engine/tuning_file_native.h"

namespace doppler::cli {

Result<Tuned> tune_model(const ModelFlags& flags, const bench::TunerSettings& settings) {
  const std::string cache_dir = user_cache_dir();
  DP_TRY(const model::RunnerOptions options, engine::runner_options(flags.load));
  DP_TRY(const std::unique_ptr<gpu::Device> device, open_device(flags));
  DP_TRY(const std::unique_ptr<formats::Checkpoint> checkpoint,
         open_named_checkpoint(flags.model, flags.synthetic));
  Tuned tuned{.key = engine::tuning_key(device->caps(), options),
              .model_key = engine::model_key(*checkpoint)};
  const std::unique_ptr<bench::TrialMaker> trials = bench::model_trials(*device, *checkpoint, options);
  DP_TRY(tuned.result, bench::tune(*trials, settings));
  DP_CHECK(try_persistent(flags, device->caps().type, tuned));
  tuned.path = engine::tuning_path(cache_dir, tuned.key);
  return tuned;
}

Result<void> keep(const Tuned& tuned, std::optional<uint32_t> batch) {
  const std::string cache_dir = user_cache_dir();
  kernels::TuningTable table;
  if (const auto old = engine::load_tuning(cache_dir, tuned.key)) table = *old;
  // The new measurements replace the known ones for these shapes; other models' shapes stay.
  for (const bench::Attempt& attempt : tuned.result.attempts)
    table.choices.erase({attempt.operation, attempt.shape});
  for (const auto& [name, choice] : tuned.result.table.choices) table.choices[name] = choice;
  if (batch) table.batch[tuned.model_key] = *batch;
  if (tuned.persistent == true) table.persistent.insert(tuned.model_key);
  if (tuned.persistent == false) table.persistent.erase(tuned.model_key);
  return engine::save_tuning(cache_dir, tuned.key, table);
}

namespace {

int forget(const ModelFlags& flags) {
  const auto forgotten = [&]() -> Result<bool> {
    DP_TRY(const model::RunnerOptions options, engine::runner_options(flags.load));
    DP_TRY(const std::unique_ptr<gpu::Device> device, open_device(flags));
    return engine::forget_tuning(user_cache_dir(), engine::tuning_key(device->caps(), options));
  }();
  if (!forgotten) return exit_failed(forgotten.error());
  std::puts(*forgotten ? "The tuning of this device, lane and cache format is removed."
                       : "There was no tuning of this device, lane and cache format.");
  return 0;
}

}  // namespace

Result<std::unique_ptr<gpu::Device>> open_device(const ModelFlags& flags) {
  return run_now(gpu::Device::open(
      {.provider = flags.load.webgpu, .adapter = flags.load.device, .cache_dir = user_cache_dir()}));
}

int tune_verb(std::span<const std::string> arguments) {
  ModelFlags flags;
  bench::TunerSettings settings;
  uint32_t budget = 60;
  bool json = false, forgets = false;
  Args args(
      "doppler tune [flags]",
      "Measures which kernels are fastest on this device for a model's shapes, and uses them from now on.");
  args.count("budget", 0, "SECONDS", "when to stop measuring (default 60)", &budget);
  args.count("rounds", 0, "N", "measurements of each candidate, in turns with the present choice (default 5)",
             &settings.rounds);
  args.flag("forget", 0, "remove what was stored for this device, lane and cache format", &forgets);
  args.flag("json", 0, "print one JSON object", &json);
  add_model_flags(args, flags, /*allow_synthetic=*/true);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (settings.rounds == 0) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "Flag --rounds was given 0; at least 1 is needed."));
  }
  if (budget == 0) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "Flag --budget was given 0; at least 1 is needed."));
  }
  if (forgets) return forget(flags);
  settings.budget_seconds = budget;
  if (stderr_is_terminal()) {
    settings.progress = [](const std::string& line) { std::fprintf(stderr, "\r\033[K%s", line.c_str()); };
  }
  const auto tuned = tune_model(flags, settings);
  end_progress();
  if (!tuned) return exit_failed(tuned.error());
  if (const auto kept = keep(*tuned, std::nullopt); !kept) return exit_failed(kept.error());
  if (json) {
    std::fputs(bench::tuner_json(tuned->result, tuned->key, origin_of(flags)).c_str(), stdout);
  } else {
    std::printf("%s (%s), %s, lane %s\n%sStored in %s; doppler kernels --explain shows what is used.\n",
                tuned->key.adapter.c_str(), tuned->key.driver.c_str(), tuned->key.provider.c_str(),
                tuned->key.lane.c_str(), bench::tuner_text(tuned->result).c_str(), tuned->path.c_str());
  }
  return 0;
}

}  // namespace doppler::cli
