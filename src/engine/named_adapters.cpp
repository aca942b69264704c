#include "engine/named_adapters.h"

#include <cmath>

#include "base/text.h"

namespace doppler::engine {

void NamedAdapters::add(NamedAdapter adapter) {
  std::string name = adapter.name;
  adapters_.insert_or_assign(std::move(name), std::move(adapter));
}

Result<void> NamedAdapters::remove(const std::string& name) {
  if (adapters_.erase(name) != 0) return {};
  return fail(ErrorKind::kInvalidInput, "There is no adapter \"%s\".", printable(name).c_str());
}

std::vector<AdapterInfo> NamedAdapters::list() const {
  std::vector<AdapterInfo> out;
  for (const auto& [name, named] : adapters_) {
    out.push_back(
        {.name = name, .path = named.adapter->name, .rank = named.adapter->rank(), .scale = named.scale});
  }
  return out;
}

Result<std::shared_ptr<const model::AdapterMix>> NamedAdapters::mix_of(
    std::span<const AdapterUse> uses) const {
  auto mix = std::make_shared<model::AdapterMix>();
  for (const AdapterUse& use : uses) {
    const auto it = adapters_.find(use.name);
    if (it == adapters_.end()) {
      return fail(ErrorKind::kInvalidInput, "There is no adapter \"%s\".", printable(use.name).c_str());
    }
    const float scale = use.scale * it->second.scale;
    if (!std::isfinite(scale)) {
      return fail(ErrorKind::kInvalidInput, "The scale of adapter \"%s\" is no number.",
                  printable(use.name).c_str());
    }
    if (use.scale == 0) continue;
    mix->parts.push_back({.adapter = it->second.adapter, .scale = scale});
  }
  if (mix->parts.empty()) return std::shared_ptr<const model::AdapterMix>();
  return std::shared_ptr<const model::AdapterMix>(std::move(mix));
}

}  // namespace doppler::engine
