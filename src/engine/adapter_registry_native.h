// The adapters of a model by name. They come and go while the model answers. Any thread may call.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/adapters.h"

namespace doppler::engine {

class AdapterRegistry {
 public:
  void add(NamedAdapter adapter);  // replaces an adapter of the same name
  Result<void> remove(const std::string& name);
  std::vector<AdapterInfo> list() const;
  // Null: none. Error: no adapter of that name; a scale that is no number.
  Result<std::shared_ptr<const model::AdapterMix>> mix_of(std::span<const AdapterUse> uses) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, NamedAdapter, std::less<>> adapters_;
};

}  // namespace doppler::engine
