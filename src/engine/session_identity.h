// The model that a saved session belongs to: a fingerprint of its shape and a digest of its weights. The file:
// session_file.h.
#pragma once

#include <string>

#include "engine/loaded_model.h"

namespace doppler::engine {

// 16 hexadecimal digits over samples of the weights: 1 KiB from the middle of up to 32 tensors, evenly taken. Models of
// one shape that were trained or quantised differently differ in them; it is no defence against a forger.
Task<Result<std::string>> weights_digest(const formats::Checkpoint& checkpoint);
// The facts that a cache depends on beside the weights: the scaling of positions, in a session of so many. " scaled "
// and 16 hexadecimal digits; empty if nothing scales them.
Task<Result<std::string>> scaling_digest(const formats::Checkpoint& checkpoint,
                                         const formats::ModelConfig& config, uint32_t ctx_len);
// The facts in which the model that saved and the one that restores must agree.
Task<Result<std::string>> session_fingerprint(const LoadedModel& loaded);

}  // namespace doppler::engine
