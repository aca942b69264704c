// The adapters of a model by name. One thread at a time may call; adapter_registry_native.h lets in any.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/adapters.h"

namespace doppler::engine {

class NamedAdapters {
 public:
  void add(NamedAdapter adapter);  // replaces an adapter of the same name
  Result<void> remove(const std::string& name);
  std::vector<AdapterInfo> list() const;
  // Null: none. Error: no adapter of that name; a scale that is no number.
  Result<std::shared_ptr<const model::AdapterMix>> mix_of(std::span<const AdapterUse> uses) const;

 private:
  std::map<std::string, NamedAdapter, std::less<>> adapters_;
};

}  // namespace doppler::engine
