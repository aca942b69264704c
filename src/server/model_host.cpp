#include "server/model_host.h"

#include "base/log.h"
#include "base/text.h"

namespace doppler::server {

const char* model_state_name(ModelState state) {
  switch (state) {
    case ModelState::kUnloaded:
      return "unloaded";
    case ModelState::kLoading:
      return "loading";
    case ModelState::kReady:
      return "ready";
    case ModelState::kUnloading:
      return "unloading";
    case ModelState::kFailed:
      return "failed";
  }
  return "";
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
  return scheduler ? scheduler->load() : SchedulerLoad{};
}

ModelHost::Use::Use(ModelHost& host) : host_(host) {
  ++host_.active_;
  const std::lock_guard lock(host_.mutex_);
  host_.last_used_ = std::chrono::steady_clock::now();
}

ModelHost::Use::~Use() {
  if (--host_.active_ == 0) host_.on_idle_();
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
      ready_.emplace(ReadyModel{.name = source_.name, .model = std::move(*model), .scheduler = {}});
    } else if (auto scheduler = model->scheduler()) {
      ready_.emplace(
          ReadyModel{.name = source_.name, .model = std::move(*model), .scheduler = std::move(*scheduler)});
    } else {
      error = std::move(scheduler).error();
    }
    if (error) log(LogLevel::kError, "Model %s: %s", source_.name.c_str(), error->message().c_str());
    const std::lock_guard lock(mutex_);
    stage_.clear();
    error_ = std::move(error);
    if (ready_) {
      info_ = ready_->model.info();
      // The scheduler is a handle: a second one is had for other threads.
      if (ready_->scheduler) {
        if (auto scheduler = ready_->model.scheduler())
          scheduler_ = std::make_shared<Scheduler>(std::move(*scheduler));
      }
    }
    state_ = ready_ ? ModelState::kReady : ModelState::kFailed;
  });
}

void ModelHost::unload() {
  state_ = ModelState::kUnloading;
  worker_->post([this] {
    kept_.clear();
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
