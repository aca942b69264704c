#include "server/adapters.h"

#include <algorithm>

#include "base/text.h"

namespace doppler::server {
namespace {

Unexpected no_such_id(uint32_t id, size_t count) {
  if (count == 0)
    return fail(ErrorKind::kInvalidInput, "Field \"lora\" names adapter %u; the model has none.", id);
  return fail(ErrorKind::kInvalidInput,
              "Field \"lora\" names adapter %u; allowed is 0 to %zu (/lora-adapters).", id, count - 1);
}

void use(const ServedAdapter& adapter, float scale, openai::ServedRequest& request) {
  if (scale == 0) return;
  request.options.adapters->push_back({.name = adapter.name, .scale = scale});
  request.adapter_files.push_back({.path = adapter.path, .scale = adapter.scale, .name = adapter.name});
}

}  // namespace

void ServedAdapters::add(ServedAdapter adapter) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(adapters_, adapter.name, &ServedAdapter::name);
  if (known == adapters_.end()) {
    adapters_.push_back(std::move(adapter));
  } else {
    *known = std::move(adapter);
  }
}

bool ServedAdapters::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(adapters_, [&](const ServedAdapter& adapter) { return adapter.name == name; }) != 0;
}

std::optional<ServedAdapter> ServedAdapters::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(adapters_, name, &ServedAdapter::name);
  return known == adapters_.end() ? std::nullopt : std::optional(*known);
}

std::vector<ServedAdapter> ServedAdapters::of_model(std::string_view model) const {
  const std::lock_guard lock(mutex_);
  std::vector<ServedAdapter> out;
  std::ranges::copy_if(adapters_, std::back_inserter(out),
                       [&](const ServedAdapter& adapter) { return adapter.model == model; });
  return out;
}

Result<void> ServedAdapters::set_standing(const std::string& model,
                                          const std::vector<openai::LoraScale>& scales) {
  const std::lock_guard lock(mutex_);
  std::vector<ServedAdapter*> own;
  for (ServedAdapter& adapter : adapters_) {
    if (adapter.model == model) own.push_back(&adapter);
  }
  for (const openai::LoraScale& scale : scales) {
    if (scale.id >= own.size()) return no_such_id(scale.id, own.size());
  }
  for (ServedAdapter* adapter : own) adapter->standing = 0;
  for (const openai::LoraScale& scale : scales) own[scale.id]->standing = scale.scale;
  return {};
}

Result<void> ServedAdapters::choose(const std::string& model, openai::ServedRequest& request) const {
  const std::vector<ServedAdapter> own = of_model(model);
  const auto named = std::ranges::find(own, request.model, &ServedAdapter::name);
  if (request.lora) {
    request.options.adapters.emplace();
    for (const openai::LoraScale& scale : *request.lora) {
      if (scale.id >= own.size()) return no_such_id(scale.id, own.size());
      use(own[scale.id], scale.scale, request);
    }
  } else if (named != own.end()) {
    request.options.adapters.emplace();
    request.adapter = named->name;
    use(*named, 1, request);
  } else if (std::ranges::any_of(own, [](const ServedAdapter& adapter) { return adapter.standing != 0; })) {
    request.options.adapters.emplace();
    for (const ServedAdapter& adapter : own) use(adapter, adapter.standing, request);
  }
  return {};
}

}  // namespace doppler::server
