// Runs a given token sequence through a runner that gives all logits, chunk by chunk.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/task.h"
#include "model/device_model.h"

namespace doppler::engine {

// Called with the position of the chunk's first token, its token count and its rows.
using OnRows = std::function<void(uint32_t pos, uint32_t count, const model::DeviceModel::Rows& rows)>;

// types: of the tokens, for models that have them; empty: 0.
// Errors: no tokens, one outside the vocabulary, more than the context holds.
Task<Result<void>> score_tokens(model::DeviceModel& runner, std::span<const uint32_t> tokens, OnRows on_rows,
                                std::span<const uint32_t> types = {});

// -log softmax(logits)[token], in double precision.
double negative_log_likelihood(std::span<const float> logits, uint32_t token);

}  // namespace doppler::engine
