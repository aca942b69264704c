// The adapters (LoRA) that requests of JavaScript name. Read next: engine/named_adapters.h.
#pragma once

#include "base/json_fwd.h"
#include "doppler/doppler.h"
#include "engine/adapters.h"

namespace doppler::web {

// {"list": [{"files", "name", "scale"}], "slots", "rank"}: what a model is loaded with.
Result<engine::AdapterSources> read_adapter_sources(const Json& json);
// [{"name", "scale"}]: what an answer has.
Result<std::vector<AdapterUse>> read_adapter_uses(const Json& list);

}  // namespace doppler::web
