#include "engine/adapter_registry_native.h"

namespace doppler::engine {

void AdapterRegistry::add(NamedAdapter adapter) {
  const std::lock_guard lock(mutex_);
  adapters_.add(std::move(adapter));
}

Result<void> AdapterRegistry::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return adapters_.remove(name);
}

std::vector<AdapterInfo> AdapterRegistry::list() const {
  const std::lock_guard lock(mutex_);
  return adapters_.list();
}

Result<std::shared_ptr<const model::AdapterMix>> AdapterRegistry::mix_of(
    std::span<const AdapterUse> uses) const {
  const std::lock_guard lock(mutex_);
  return adapters_.mix_of(uses);
}

}  // namespace doppler::engine
