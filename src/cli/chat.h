// The chat of `run -i`: line editing and history (libedit), the conversation, a few commands.
#pragma once

#include <string>

#include "doppler/doppler.h"

namespace doppler::cli {

// Until end of input or /quit. Uses the model's chat template where it has one, plain continuation otherwise.
Result<void> chat_at_terminal(Model& model, Session& session, const GenerateOptions& options, const std::string& system);

}  // namespace doppler::cli
