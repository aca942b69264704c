#include "server/apis/responses_store.h"

#include <algorithm>

namespace doppler::server {

void ResponsesStore::put(const std::string& id, StoredResponse response) {
  const std::lock_guard lock(mutex_);
  kept_.emplace_front(id, std::move(response));
  if (kept_.size() > kMostKept) kept_.pop_back();
}

std::optional<StoredResponse> ResponsesStore::get(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(kept_, id, [](const auto& item) { return item.first; });
  return found == kept_.end() ? std::nullopt : std::optional(found->second);
}

bool ResponsesStore::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(kept_, [&](const auto& item) { return item.first == id; }) > 0;
}

void ResponsesStore::begin(const std::string& id, std::function<void()> cancel) {
  const std::lock_guard lock(mutex_);
  running_.emplace_back(id, std::move(cancel));
}

void ResponsesStore::end(const std::string& id) {
  const std::lock_guard lock(mutex_);
  std::erase_if(running_, [&](const auto& item) { return item.first == id; });
}

bool ResponsesStore::cancel(const std::string& id) {
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find(running_, id, [](const auto& item) { return item.first; });
    if (found == running_.end()) return false;
    call = found->second;
  }
  call();
  return true;
}

}  // namespace doppler::server
