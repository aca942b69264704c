// Which model a saved session belongs to: a fingerprint of its shape and a digest of its weights. The file: session_file.h.
#pragma once

#include <string>

#include "engine/loaded_model.h"

namespace doppler::engine {

// 16 hexadecimal digits over samples of the weights: 1 KiB from the middle of up to 32 tensors, evenly taken. Models of one
// shape that were trained or quantised differently differ in them; it is no defence against a forger.
Task<Result<std::string>> weights_digest(const formats::Checkpoint& checkpoint);
// What a cache depends on beside the weights: how positions are scaled, in a session of so many. " scaled " and 16 hexadecimal
// digits; empty where nothing scales them.
Task<Result<std::string>> scaling_digest(const formats::Checkpoint& checkpoint,
                                         const formats::ModelConfig& config, uint32_t ctx_len);
// What must agree between the model that saved and the one that restores.
Task<Result<std::string>> session_fingerprint(const LoadedModel& loaded);

}  // namespace doppler::engine
