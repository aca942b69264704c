#include "server/model_host.h"

#include "base/log.h"
#include "base/text.h"
#include "engine/api_impl.h"

namespace doppler::server {

const char* model_state_name(ModelState state) {
  switch (state) {
    case ModelState::kUnloaded:
      return "unloaded";
    case ModelState::kLoading:
      return "loading";
    case ModelState::kWarming:
      return "warming up";
    case ModelState::kReady:
      return "ready";
    case ModelState::kUnloading:
      return "unloading";
    case ModelState::kFailed:
      return "failed";
  }
  return "";
}

Result<batch::ChatStart> ReadyModel::start(const openai::ChatFields& chat, const Grammar& grammar) {
  auto started = start_chat(Model::Impl::of(model).loaded->text, chat, grammar, unknown_tools);
  if (started && started->prompt.tells_tools && !std::exchange(has_told_of_tools, true)) {
    log(LogLevel::kWarning,
        "Model %s: its chat template knows no tools, so that the conversation tells of them and calls are "
        "JSON (--template-tools refuses them).",
        name.c_str());
  }
  return started;
}

ModelHost::ModelHost(ModelSource source, std::function<void()> on_idle)
    : source_(std::move(source)), on_idle_(std::move(on_idle)) {}

ModelHost::~ModelHost() {
  stopping_ = true;
  unload();
  worker_->stop();
}

std::string ModelHost::stage() const {
  const std::lock_guard lock(mutex_);
  return stage_;
}

std::optional<ModelInfo> ModelHost::info() const {
  const std::lock_guard lock(mutex_);
  return info_;
}

ModelFacts ModelHost::facts() {
  const std::lock_guard lock(facts_mutex_);
  if (facts_) return *facts_;
  auto read = source_.facts();
  if (!read) log(LogLevel::kWarning, "Model %s: %s", source_.name.c_str(), read.error().message().c_str());
  facts_ = read ? std::move(*read) : ModelFacts{};
  return *facts_;
}

std::chrono::steady_clock::time_point ModelHost::last_used() const {
  const std::lock_guard lock(mutex_);
  return last_used_;
}

SchedulerLoad ModelHost::load_now() {
  std::shared_ptr<Scheduler> scheduler;
  {
    const std::lock_guard lock(mutex_);
    scheduler = scheduler_;
  }
  // Steps without a request warm the model up.
  const bool is_idle = active_ == 0;
  SchedulerLoad load = scheduler ? scheduler->load() : SchedulerLoad{};
  if (!is_idle) return load;
  load.running = load.waiting = 0;
  for (DeviceLoad& device : load.devices) device.running = device.waiting = 0;
  return load;
}

ModelHost::Use::Use(ModelHost& host) : host_(host) {
  if (host_.active_++ == 0) {
    host_.worker_->post([of = &host_] {
      if (of->warming_) of->warming_->pause();
    });
  }
  const std::lock_guard lock(host_.mutex_);
  host_.last_used_ = std::chrono::steady_clock::now();
}

ModelHost::Use::~Use() {
  if (--host_.active_ != 0) return;
  host_.worker_->post([of = &host_] {
    if (of->active_ == 0) of->go_on_warming();
  });
  host_.on_idle_();
}

void ModelHost::load() {
  ModelState unloaded = ModelState::kUnloaded, failed = ModelState::kFailed;
  if (!state_.compare_exchange_strong(unloaded, ModelState::kLoading) &&
      !state_.compare_exchange_strong(failed, ModelState::kLoading)) {
    return;
  }
  worker_->post([this] {
    const auto progress = [this](std::string_view stage, uint64_t done, uint64_t total) {
      const double percent = total == 0 ? 100 : 100 * static_cast<double>(done) / static_cast<double>(total);
      const std::lock_guard lock(mutex_);
      stage_ = format_text("%.*s %.0f %%", static_cast<int>(stage.size()), stage.data(), percent);
      return !stopping_;
    };
    auto model = source_.load(progress);
    std::optional<Error> error;
    if (!model) {
      error = std::move(model).error();
    } else if (model->info().pooling != "none") {
      ready_.emplace(ReadyModel{.name = source_.name,
                                .model = std::move(*model),
                                .scheduler = {},
                                .unknown_tools = source_.unknown_tools});
    } else if (auto scheduler = model->scheduler()) {
      ready_.emplace(ReadyModel{.name = source_.name,
                                .model = std::move(*model),
                                .scheduler = std::move(*scheduler),
                                .unknown_tools = source_.unknown_tools});
    } else {
      error = std::move(scheduler).error();
    }
    if (error) log(LogLevel::kError, "Model %s: %s", source_.name.c_str(), error->message().c_str());
    {
      const std::lock_guard lock(mutex_);
      stage_.clear();
      error_ = std::move(error);
      if (ready_) {
        info_ = ready_->model.info();
        // A scheduler is a handle, so other threads get a second one.
        if (ready_->scheduler) {
          if (auto scheduler = ready_->model.scheduler())
            scheduler_ = std::make_shared<Scheduler>(std::move(*scheduler));
          if (scheduler_) devices_ = static_cast<uint32_t>(scheduler_->load().devices.size());
        }
      }
    }
    if (ready_ && source_.warms_up) warm_up();
    state_ = ready_ ? ModelState::kReady : ModelState::kFailed;
    if (active_ == 0) go_on_warming();
  });
}

void ModelHost::go_on_warming() {
  if (warming_) warming_->go_on();
}

void ModelHost::warm_up() {
  state_ = ModelState::kWarming;
  Scheduler* scheduler = ready_->scheduler ? &*ready_->scheduler : nullptr;
  // It ends early if a request waits, which compiles what it needs by itself, or if the server ends.
  const auto warmed =
      server::warm_up(ready_->model, scheduler, [this] { return !stopping_ && active_ == 0; });
  if (!warmed)
    log(LogLevel::kWarning, "Model %s: %s", source_.name.c_str(), warmed.error().message().c_str());
  if (!warmed || !scheduler) return;
  if (auto own = ready_->model.scheduler()) {
    warming_ = std::make_shared<MoreWarmUps>(std::move(*own), ready_->model.info().vocab_size, source_.places,
                                             worker_);
  }
}

void ModelHost::unload() {
  state_ = ModelState::kUnloading;
  worker_->post([this] {
    kept_.clear();
    warming_ = nullptr;
    {
      const std::lock_guard lock(mutex_);
      scheduler_ = nullptr;
    }
    ready_.reset();
    state_ = ModelState::kUnloaded;
    on_idle_();
  });
}

void ModelHost::ask(std::function<void(ReadyModel*, const Error*)> work) {
  worker_->post([this, work = std::move(work)] {
    if (ready_) return work(&*ready_, nullptr);
    const Error unloaded(ErrorKind::kCancelled, "The model was unloaded.");
    work(nullptr, error_ ? &*error_ : &unloaded);
  });
}

}  // namespace doppler::server
