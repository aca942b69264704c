// The members of an RDRR manifest that describe the model's architecture, made from the facts that the engine reads:
// the converter writes them, `doppler verify` compares them.
#pragma once

#include "base/json_fwd.h"
#include "base/result.h"
#include "formats/architectures/config.h"

namespace doppler::engine {

// "n_layers": 16, "rope_theta": 500000.0, ...: RdrrManifest::architecture.
Json rdrr_architecture(const formats::ModelConfig& config);

// Error: a number of the manifest is another than the model's; names it and both.
Result<void> check_rdrr_architecture(const Json& architecture, const formats::ModelConfig& config);

}  // namespace doppler::engine
