// The adapters of a model by name. They come and go while the model answers. Any thread may call.
#pragma once

#include <mutex>

#include "engine/named_adapters.h"

namespace doppler::engine {

// As NamedAdapters.
class AdapterRegistry {
 public:
  void add(NamedAdapter adapter);
  Result<void> remove(const std::string& name);
  std::vector<AdapterInfo> list() const;
  Result<std::shared_ptr<const model::AdapterMix>> mix_of(std::span<const AdapterUse> uses) const;

 private:
  mutable std::mutex mutex_;
  NamedAdapters adapters_;
};

}  // namespace doppler::engine
