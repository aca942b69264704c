#include "server/models.h"

#include <algorithm>

namespace doppler::server {

Models::Models(std::vector<ModelSource> sources, uint32_t most_loaded, bool any_name)
    : any_name_(any_name),
      most_loaded_(most_loaded == 0 ? static_cast<uint32_t>(sources.size()) : most_loaded) {
  for (ModelSource& source : sources) {
    hosts_.push_back(std::make_shared<ModelHost>(std::move(source), [this] {
      const std::lock_guard lock(mutex_);
      make_room();
    }));
  }
}

Models::~Models() {
  std::vector<Waiting> dropped;  // ends outside of the lock: it may hold a use of a model
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(waiting_);
  }
  dropped.clear();
  hosts_.clear();
}

std::shared_ptr<ModelHost> Models::find(std::string_view name) const {
  if (name.empty()) return hosts_.front();
  // Ollama's names have a tag; ":latest" is its default.
  constexpr std::string_view kLatest = ":latest";
  if (name.ends_with(kLatest)) name.remove_suffix(kLatest.size());
  const auto found =
      std::ranges::find(hosts_, name, [](const auto& host) { return std::string_view(host->source().name); });
  if (found != hosts_.end()) return *found;
  return any_name_ ? hosts_.front() : nullptr;
}

bool Models::has_begun(const ModelHost& host) const {
  const ModelState state = host.state();
  return state == ModelState::kLoading || state == ModelState::kWarming || state == ModelState::kReady;
}

void Models::want(const std::shared_ptr<ModelHost>& host) {
  ask(host, [](ReadyModel*, const Error*) {});
}

void Models::ask(std::shared_ptr<ModelHost> host, std::function<void(ReadyModel*, const Error*)> work) {
  const std::lock_guard lock(mutex_);
  if (has_begun(*host)) return host->ask(std::move(work));
  waiting_.push_back({std::move(host), std::move(work)});
  make_room();
}

// Loads what is waited for, in order, while there is room or an idle model to unload.
void Models::make_room() {
  while (!waiting_.empty()) {
    const std::shared_ptr<ModelHost> next = waiting_.front().host;
    if (!has_begun(*next)) {
      std::vector<ModelHost*> loaded, idle;
      for (const auto& host : hosts_) {
        if (!has_begun(*host) && host->state() != ModelState::kUnloading) continue;
        loaded.push_back(host.get());
        if (host->active() == 0 && !host->source().is_pinned && host->state() == ModelState::kReady)
          idle.push_back(host.get());
      }
      if (loaded.size() >= most_loaded_) {
        if (idle.empty()) return;
        // It calls again when that is done.
        return (*std::ranges::min_element(idle, {}, &ModelHost::last_used))->unload();
      }
      next->load();
    }
    const auto of_next = std::stable_partition(waiting_.begin(), waiting_.end(),
                                               [&](const Waiting& item) { return item.host != next; });
    for (auto item = of_next; item != waiting_.end(); ++item) next->ask(std::move(item->work));
    waiting_.erase(of_next, waiting_.end());
  }
}

}  // namespace doppler::server
