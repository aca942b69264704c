// The public API (include/doppler/doppler.h) over the engine's coroutines: every call drives its task to the
// end with the device's poll loop.
#include <algorithm>
#include <atomic>
#include <thread>

#include "base/json.h"
#include "base/mapped_file.h"
#include "doppler/doppler.h"
#include "engine/adapter_registry_native.h"
#include "engine/api_impl.h"
#include "engine/dispatch/dispatcher_native.h"
#include "engine/draft_model.h"
#include "engine/guide_native.h"
#include "engine/model_options.h"
#include "engine/scheduler_driver_native.h"
#include "engine/session_file.h"
#include "engine/session_identity.h"
#include "engine/tuning.h"
#include "engine/tuning_file_native.h"
#include "formats/file_set_native.h"
#include "formats/shared_file_set.h"
#include "gpu/device_list.h"

namespace doppler {

// ---- Model

namespace {

Result<engine::AdapterSources> adapter_sources(const LoadOptions& options) {
  engine::AdapterSources out{.files = {}, .slots = options.adapter_slots, .rank = options.adapter_rank};
  for (const AdapterFile& file : options.adapters) {
    DP_TRY(std::unique_ptr<formats::FileSet> files, formats::open_file_set(file.path));
    out.files.push_back({.files = std::move(files), .name = file.name, .scale = file.scale});
  }
  return out;
}

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

// Loads the files on a card whose device is open.
Result<void> load_card(engine::Card& card, std::unique_ptr<formats::FileSet> files,
                       const LoadOptions& options, LoadExtras extras) {
  DP_TRY(model::RunnerOptions runner, engine::runner_options(options));
  runner.all_logits = extras.all_logits;
  runner.hidden = extras.hidden;
  if (extras.all_logits) runner.max_sequences = 0;  // logits() is of one sequence
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
  DP_TRY(engine::AdapterSources adapters, adapter_sources(options));
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
  model::SequenceRunner* const steps = card.loaded->runner->runner();
  if (!steps) return {};
  engine::SchedulerConfig config = engine::scheduler_config(*card.loaded);
  config.host_cache_bytes = options.cache_host_bytes;
  DP_TRY(card.driver, engine::SchedulerDriver::create(*card.device, *steps, std::move(config)));
  return {};
}

// All cards at once, each in a thread of its own: what one reads of the files, the others find in memory.
Result<void> load_cards(std::span<engine::Card* const> cards, std::unique_ptr<formats::FileSet> files,
                        const LoadOptions& options, LoadExtras extras) {
  if (cards.size() == 1) return load_card(*cards[0], std::move(files), options, extras);
  const std::shared_ptr<formats::FileSet> shared = std::move(files);
  std::vector<Result<void>> loaded(cards.size());
  const auto load = [&](size_t i, const LoadOptions& chosen) {
    loaded[i] = load_card(*cards[i], std::make_unique<formats::SharedFileSet>(shared), chosen, extras);
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
    DP_CHECK_WHILE(std::move(loaded[i]), "loading on device %zu of %zu, %s", i + 1, cards.size(),
                   cards[i]->device->caps().adapter.c_str());
  }
  return {};
}

// "NVIDIA H200", "2 x NVIDIA H200", "NVIDIA H200 and NVIDIA H100".
std::string names_of(std::span<engine::Card* const> cards) {
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

// Opens the devices and loads the files on each.
Result<void> load_into(Model::Impl& impl, std::unique_ptr<formats::FileSet> files, const LoadOptions& options,
                       LoadExtras extras) {
  DP_TRY(const std::vector<gpu::DeviceOptions> devices,
         gpu::each_device(
             {.provider = options.webgpu, .adapter = options.device, .cache_dir = options.cache_dir}));
  std::vector<engine::Card*> cards = {&impl};
  while (cards.size() < devices.size())
    cards.push_back(impl.others.emplace_back(std::make_unique<engine::Card>()).get());
  for (size_t i = 0; i < cards.size(); ++i) {
    auto opening = gpu::Device::open(devices[i]);
    opening.start();  // natively it does not wait
    DP_TRY(cards[i]->device, opening.take());
  }
  DP_CHECK(load_cards(cards, std::move(files), options, extras));
  if (!impl.adapters) impl.adapters = std::make_shared<engine::AdapterRegistry>();
  for (engine::NamedAdapter& named : impl.loaded->named_adapters) impl.adapters->add(std::move(named));
  impl.info = engine::describe(*impl.loaded, *impl.device);
  impl.info.adapter = names_of(cards);
  if (!impl.driver) return {};
  impl.guides = std::make_shared<engine::ModelGuides>(impl.loaded->text);
  std::vector<engine::SchedulerDriver*> drivers;
  for (engine::Card* card : cards) drivers.push_back(card->driver.get());
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

Model::Model(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const ModelInfo& Model::info() const { return impl_->info; }

Counters Model::counters() const {
  if (!impl_->loaded) return {};
  Counters sum = engine::counters_since_load(*impl_->loaded, *impl_->device);
  for (const auto& card : impl_->others) {
    const Counters one = engine::counters_since_load(*card->loaded, *card->device);
    sum.submits += one.submits;
    sum.dispatches += one.dispatches;
    sum.readback_bytes += one.readback_bytes;
    sum.objects_created += one.objects_created;
  }
  return sum;
}

Result<std::vector<int32_t>> Model::tokenize(std::string_view text, bool add_special,
                                             bool parse_special) const {
  DP_TRY(const tokenizer::Tokenizer* tokenizer, impl_->tokenizer());
  return tokenizer->encode(text, {.add_special = add_special, .parse_special = parse_special});
}

Result<std::string> Model::detokenize(std::span<const int32_t> ids) const {
  DP_TRY(const tokenizer::Tokenizer* tokenizer, impl_->tokenizer());
  return tokenizer->decode(ids, {});
}

Result<std::string> Model::apply_chat_template(std::span<const Message> messages,
                                               bool add_generation_prompt) const {
  DP_CHECK(impl_->check_loaded());
  DP_TRY(const Json list, messages_json(messages));
  return engine::apply_chat_template(impl_->loaded->text, list, add_generation_prompt);
}

Result<void> Model::load_adapter(const std::string& name, const std::string& path) {
  DP_CHECK(impl_->check_loaded());
  DP_TRY(std::unique_ptr<formats::FileSet> files, formats::open_file_set(path));
  auto opening = engine::open_fitted(std::move(files), impl_->loaded->runner->config());
  opening.start();  // natively it does not wait
  DP_TRY(std::shared_ptr<const formats::FittedAdapter> adapter, opening.take());
  const auto mix = std::make_shared<model::AdapterMix>(model::AdapterMix{.parts = {{adapter}}});
  DP_CHECK(impl_->loaded->runner->adapters().check(mix));
  impl_->adapters->add({.name = name, .scale = 1, .adapter = std::move(adapter)});
  return {};
}

Result<void> Model::unload_adapter(const std::string& name) { return impl_->adapters->remove(name); }

std::vector<AdapterInfo> Model::adapters() const { return impl_->adapters->list(); }

Result<void> Model::Impl::choose_adapters(const GenerateOptions& options, engine::Request& request) const {
  if (!options.adapters) return {};
  request.first_adapters = false;
  DP_TRY(request.settings.adapters, adapters->mix_of(*options.adapters));
  return {};
}

Session Model::new_session() { return Session(std::make_unique<Session::Impl>(impl_)); }

// ---- Session

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Generation> Session::generate(std::string_view prompt, const GenerateOptions& options,
                                     const TextCallback& on_text) {
  DP_CHECK(start(prompt, options));
  return impl_->run(on_text);
}

Result<Generation> Session::generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                     const TextCallback& on_text) {
  DP_CHECK(impl_->start_ids(prompt, options));
  return impl_->run(on_text);
}

Result<Generation> Session::chat(std::span<const Message> messages, const GenerateOptions& options,
                                 const TextCallback& on_text) {
  DP_CHECK(impl_->start_chat(messages, options));
  return impl_->run(on_text);
}

Result<void> Session::start(std::string_view prompt, const GenerateOptions& options) {
  DP_TRY(const tokenizer::Tokenizer* tokenizer, impl_->model->tokenizer());
  const bool add_special = options.add_special && impl_->sequence.empty();
  DP_TRY(const std::vector<int32_t> ids,
         tokenizer->encode(prompt, {.add_special = add_special, .parse_special = true}));
  return impl_->start_ids(ids, options);
}

Result<std::optional<std::string>> Session::next() { return impl_->next(); }
Result<Generation> Session::finish() { return impl_->finish(); }
void Session::cancel() { impl_->cancel(); }
Session Session::fork() const {
  auto made = std::make_unique<Impl>(impl_->model);
  made->sequence = impl_->sequence;
  made->messages = impl_->messages;
  made->images = impl_->images;
  return Session(std::move(made));
}
void Session::reset() {
  impl_->sequence.clear();
  impl_->messages.clear();
  impl_->images.clear();
}
std::span<const Message> Session::messages() const { return impl_->messages; }
std::span<const int32_t> Session::tokens() const {
  return {reinterpret_cast<const int32_t*>(impl_->sequence.data()), impl_->sequence.size()};
}

Result<void> Session::save(const std::string& path) {
  Model::Impl& model = *impl_->model;
  DP_CHECK(model.check_generates());
  if (!impl_->images.empty()) {
    return fail(ErrorKind::kUnsupported,
                "A conversation with pictures cannot be saved: the file has no place "
                "for them.");
  }
  engine::SessionFile session;
  session.tokens = impl_->sequence;
  session.messages = impl_->messages;
  // Only what this session and the cache share is worth keeping; the rest is evaluated again after a restore.
  // Nothing is saved for several sequences: the prefix cache decides what it keeps.
  if (model.loaded->runner->runner()->holds_text()) {
    DP_TRY(session.cache, model.dispatcher->save(impl_->sequence));
  }
  DP_TRY(const std::string fingerprint,
         gpu::run_to_completion(*model.device, engine::session_fingerprint(*model.loaded)));
  return write_file_atomically(path, engine::encode_session(fingerprint, session));
}

Result<void> Session::restore(const std::string& path) {
  Model::Impl& model = *impl_->model;
  DP_CHECK(model.check_generates());
  model::PlanRunner& runner = *model.loaded->runner;
  DP_TRY(const MappedFile file, MappedFile::open(path));
  DP_TRY(const std::string fingerprint,
         gpu::run_to_completion(*model.device, engine::session_fingerprint(*model.loaded)));
  auto decoded = engine::decode_session(file.bytes(), fingerprint);
  if (!decoded) return forward(std::move(decoded).error().add_while("restoring " + path));
  DP_CHECK(file.check_whole());
  const uint32_t cached = model::KvCache::saved_positions(decoded->cache);
  // More tokens than the context holds are fine: they slid out, or the next generation will say so.
  if (cached > decoded->tokens.size() || cached > runner.ctx_len()) {
    return fail(ErrorKind::kInvalidInput,
                "The session in %s has %u tokens in its cache; the context holds %u (--ctx).", path.c_str(),
                cached, runner.ctx_len());
  }
  impl_->sequence = std::move(decoded->tokens);
  impl_->messages = std::move(decoded->messages);
  if (!runner.runner()->holds_text()) return {};  // its text is evaluated when it goes on
  return model.dispatcher->restore(std::span(impl_->sequence).first(cached), decoded->cache);
}

}  // namespace doppler
