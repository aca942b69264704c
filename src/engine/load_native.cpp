// Loading a model on one or several devices: each has the whole model, or some of its layers. Read next:
// device_plan_native.h (which of both), model/split_sequence_native.h (how parts work together).
#include <algorithm>
#include <atomic>
#include <thread>

#include "base/log.h"
#include "engine/adapter_registry_native.h"
#include "engine/api_impl.h"
#include "engine/device_plan_native.h"
#include "engine/dispatch/dispatcher_native.h"
#include "engine/draft_model.h"
#include "engine/estimate_native.h"
#include "engine/guide_native.h"
#include "engine/model_options.h"
#include "engine/scheduler_driver_native.h"
#include "engine/tuning.h"
#include "engine/tuning_file_native.h"
#include "formats/file_set_native.h"
#include "formats/shared_file_set.h"
#include "gpu/device_list.h"
#include "model/split_sequence_native.h"

namespace doppler {
namespace {

// Loads the draft model on the same device.
Result<void> load_draft(engine::Card& card, const LoadOptions& options) {
  LoadOptions asked = options;
  asked.draft = "off";
  asked.sequences = 1;
  DP_TRY(model::RunnerOptions runner, engine::runner_options(asked));
  runner.ctx_len = card.loaded->runner->ctx_len();
  DP_TRY(std::unique_ptr<formats::FileSet> files, formats::open_file_set(options.draft_model));
  DP_TRY(
      std::unique_ptr<engine::LoadedModel> draft,
      gpu::run_to_completion(
          *card.device, engine::load_model(*card.device, std::move(files), std::move(runner), {}, {},
                                           {.verify = options.verify, .stamp_folder = options.cache_dir})));
  return engine::add_draft_model(*card.loaded, std::move(draft));
}

Result<void> make_driver(engine::Card& card, const LoadOptions& options) {
  model::SequenceRunner* const steps = card.loaded->runner->runner();
  if (!steps) return {};
  engine::SchedulerConfig config = engine::scheduler_config(*card.loaded);
  config.host_cache_bytes = options.cache_host_bytes;
  DP_TRY(card.driver, engine::SchedulerDriver::create(*card.device, *steps, std::move(config)));
  return {};
}

// Loads the files on a card whose device is open.
Result<void> load_card(engine::Card& card, std::unique_ptr<formats::FileSet> files,
                       const LoadOptions& options, model::RunnerOptions runner) {
  if (options.tuned) {
    runner.policy.tuning =
        engine::load_tuning(options.cache_dir, engine::tuning_key(card.device->caps(), runner));
  }
  model::LoadProgress progress;
  if (options.progress) {
    progress = [&](const char* stage, uint64_t done, uint64_t total) {
      return options.progress(stage, done, total);
    };
  }
  DP_TRY(engine::AdapterSources adapters, engine::adapter_sources(options));
  std::unique_ptr<formats::FileSet> projector;
  if (!options.mmproj.empty()) {
    DP_TRY(projector, formats::open_file_set(options.mmproj));
  }
  DP_TRY(card.loaded,
         gpu::run_to_completion(
             *card.device, engine::load_model(*card.device, std::move(files), std::move(runner),
                                              options.chat_template, std::move(progress),
                                              {.verify = options.verify, .stamp_folder = options.cache_dir},
                                              std::move(adapters), std::move(projector))));
  if (!options.draft_model.empty()) DP_CHECK_WHILE(load_draft(card, options), "loading the draft model");
  return {};
}

using Cards = std::span<engine::Card* const>;

// All cards at once, each in a thread of its own: what one reads of the files, the others find in memory.
Result<void> load_cards(Cards cards, const std::shared_ptr<formats::FileSet>& files,
                        const LoadOptions& options, std::span<const model::RunnerOptions> runners) {
  std::vector<Result<void>> loaded(cards.size());
  const auto load = [&](size_t i, const LoadOptions& chosen) {
    loaded[i] = load_card(*cards[i], std::make_unique<formats::SharedFileSet>(files), chosen, runners[i]);
  };
  std::atomic<bool> goes_on = true;
  LoadOptions of_others = options;
  of_others.verify = false;  // the first card compares the bytes
  of_others.progress = [&](std::string_view, uint64_t, uint64_t) { return goes_on.load(); };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < cards.size(); ++i) threads.emplace_back(load, i, of_others);
  load(0, options);
  if (!loaded[0]) goes_on = false;
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < cards.size(); ++i) {
    if (loaded[i]) continue;
    if (cards.size() == 1) return std::move(loaded[i]);
    DP_CHECK_WHILE(std::move(loaded[i]), "loading on device %zu of %zu, %s", i + 1, cards.size(),
                   cards[i]->device->caps().adapter.c_str());
  }
  return {};
}

// "NVIDIA H200", "2 x NVIDIA H200", "NVIDIA H200 and NVIDIA H100".
std::string names_of(Cards cards) {
  const std::string& first = cards[0]->device->caps().adapter;
  const auto name = [](const engine::Card* card) -> const std::string& {
    return card->device->caps().adapter;
  };
  if (cards.size() == 1) return first;
  if (std::ranges::all_of(cards, [&](const auto* card) { return name(card) == first; }))
    return format_text("%zu x ", cards.size()) + first;
  std::string out = first;
  for (const engine::Card* card : cards.subspan(1)) out += " and " + name(card);
  return out;
}

Result<std::vector<std::unique_ptr<gpu::Device>>> open_devices(const LoadOptions& options) {
  DP_TRY(const std::vector<gpu::DeviceOptions> devices,
         gpu::each_device(
             {.provider = options.webgpu, .adapter = options.device, .cache_dir = options.cache_dir}));
  std::vector<std::unique_ptr<gpu::Device>> out;
  for (const gpu::DeviceOptions& device : devices) {
    auto opening = gpu::Device::open(device);
    opening.start();  // natively it does not wait
    DP_TRY(std::unique_ptr<gpu::Device> opened, opening.take());
    out.push_back(std::move(opened));
  }
  return out;
}

// The layers of each device. Empty: each has the whole model.
Result<std::optional<model::SplitPlan>> plan_of(const std::shared_ptr<formats::FileSet>& files,
                                                const LoadOptions& options,
                                                std::span<const std::unique_ptr<gpu::Device>> devices) {
  DP_CHECK(engine::check_split_mode(options.split_mode, devices.size()));
  if (devices.size() == 1) return std::nullopt;
  auto opening = formats::open_checkpoint(std::make_unique<formats::SharedFileSet>(files), {.verify = false});
  opening.start();  // natively it does not wait
  DP_TRY(const std::unique_ptr<formats::Checkpoint> checkpoint, opening.take());
  std::vector<const gpu::Caps*> caps;
  for (const auto& device : devices) caps.push_back(&device->caps());
  return engine::plan_devices(*checkpoint, options, caps);
}

Result<std::vector<model::RunnerOptions>> runners_of(const LoadOptions& options, LoadExtras extras,
                                                     const std::optional<model::SplitPlan>& split,
                                                     size_t cards) {
  std::vector<model::RunnerOptions> out;
  if (split) {
    for (const model::SplitShare& share : split->shares) {
      out.push_back(split->options);
      out.back().part = share.layers;
    }
    return out;
  }
  DP_TRY(model::RunnerOptions runner, engine::runner_options(options));
  runner.all_logits = extras.all_logits;
  runner.hidden = extras.hidden;
  if (extras.all_logits) runner.max_sequences = 0;  // logits() is of one sequence
  out.assign(cards, runner);
  return out;
}

// Makes the steps of all parts together.
Result<void> join_parts(Model::Impl& impl, Cards cards) {
  std::vector<model::DeviceModel*> parts;
  for (engine::Card* const card : cards) parts.push_back(card->loaded->runner.get());
  DP_TRY(impl.split, model::SplitSequence::make(parts));
  impl.loaded->runner->go_through(impl.split.get());
  impl.loaded->after_load = impl.device->counters();
  return {};
}

// The memory of all cards together, and the layers of each.
void describe_parts(ModelInfo& info, Cards cards) {
  info.weight_bytes = info.cache_bytes = info.scratch_bytes = 0;
  for (const engine::Card* const card : cards) {
    const model::DeviceModel& runner = *card->loaded->runner;
    const formats::LayerRange& part = runner.config().part;
    const ModelPart made{.device = card->device->caps().adapter,
                         .first_layer = part.first,
                         .n_layers = part.end - part.first,
                         .weight_bytes = runner.memory().weight_bytes,
                         .cache_bytes = runner.memory().cache_bytes,
                         .scratch_bytes = runner.memory().scratch_bytes};
    info.weight_bytes += made.weight_bytes;
    info.cache_bytes += made.cache_bytes;
    info.scratch_bytes += made.scratch_bytes;
    info.load.seconds = std::max(info.load.seconds, card->loaded->load_seconds);
    info.parts.push_back(made);
  }
}

// Opens the devices and loads the files on each. The model's own card is the first one, or that of the last layers.
Result<void> load_into(Model::Impl& impl, std::unique_ptr<formats::FileSet> given, const LoadOptions& options,
                       LoadExtras extras) {
  const std::shared_ptr<formats::FileSet> files = std::move(given);
  DP_TRY(std::vector<std::unique_ptr<gpu::Device>> devices, open_devices(options));
  DP_TRY(const std::optional<model::SplitPlan> split, plan_of(files, options, devices));
  const size_t own = split ? devices.size() - 1 : 0;
  std::vector<engine::Card*> cards;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (i != own) impl.others.push_back(std::make_unique<engine::Card>());
    cards.push_back(i == own ? &impl : impl.others.back().get());
    cards.back()->device = std::move(devices[i]);
  }
  DP_TRY(const std::vector<model::RunnerOptions> runners, runners_of(options, extras, split, cards.size()));
  LoadOptions of_cards = options;
  if (split) of_cards.draft_model.clear();
  DP_CHECK(load_cards(cards, files, of_cards, runners));
  if (split) DP_CHECK(join_parts(impl, cards));
  std::vector<engine::SchedulerDriver*> drivers;
  for (engine::Card* const card : cards) {
    if (split && card != &impl) continue;
    DP_CHECK(make_driver(*card, options));
    drivers.push_back(card->driver.get());
  }
  if (!impl.adapters) impl.adapters = std::make_shared<engine::AdapterRegistry>();
  for (engine::NamedAdapter& named : impl.loaded->named_adapters) impl.adapters->add(std::move(named));
  impl.info = engine::describe(*impl.loaded, *impl.device);
  impl.info.adapter = names_of(cards);
  if (split) describe_parts(impl.info, cards);
  if (!impl.driver) return {};
  impl.guides = std::make_shared<engine::ModelGuides>(impl.loaded->text);
  impl.dispatcher = std::make_unique<engine::Dispatcher>(std::move(drivers));
  if (impl.driver->places() > 1) impl.driver->start_thread();
  return {};
}

}  // namespace

Result<Model> Model::load(const std::string& path, const LoadOptions& options) {
  DP_TRY(std::unique_ptr<formats::FileSet> files, formats::open_file_set(path));
  DP_TRY(Model model, load_files(std::move(files), options));
  if (model.impl_->driver && model.impl_->driver->has_thread()) return model;
  LoadOptions again = options;
  again.progress = nullptr;  // the caller's, who waits for it now
  model.impl_->reload = [path, again](Impl& impl) -> Result<void> {
    impl.unload();
    ++impl.reloads;
    DP_TRY(std::unique_ptr<formats::FileSet> same, formats::open_file_set(path));
    return load_into(impl, std::move(same), again, {});
  };
  return model;
}

Result<Model> load_files(std::unique_ptr<formats::FileSet> files, const LoadOptions& options,
                         LoadExtras extras) {
  auto impl = std::make_shared<Model::Impl>();
  DP_CHECK(load_into(*impl, std::move(files), options, extras));
  return Model::Impl::wrap(std::move(impl));
}

}  // namespace doppler
