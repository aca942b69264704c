// Reads facts about a served model from its files, whether or not it is loaded. Read next: server/model_facts.h.
#pragma once

#include <string>

#include "cli/common.h"
#include "server/model_facts.h"

namespace doppler::cli {

// `name`: the name that requests use for the model. Error: the model cannot be opened.
Result<server::ModelFacts> model_facts(const ModelFlags& flags, const std::string& name);

}  // namespace doppler::cli
