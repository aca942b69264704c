// What the files of a served model say of it, before and without loading it. Read next: server/model_facts.h.
#pragma once

#include <string>

#include "cli/common.h"
#include "server/model_facts.h"

namespace doppler::cli {

// `name`: by which requests ask for the model. Error: it cannot be opened.
Result<server::ModelFacts> model_facts(const ModelFlags& flags, const std::string& name);

}  // namespace doppler::cli
