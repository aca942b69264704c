// Guesses the next tokens of a text by work of its own: a draft model (engine/draft_model.h). The step that checks the
// guesses waits for this work.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/task.h"

namespace doppler::engine {

class HostDrafter {
 public:
  virtual ~HostDrafter() = default;
  // Gives at most `most` tokens after the text, or fewer if the draft model has no place for more. `text` must stay
  // until the task is done. Errors are the device's.
  virtual Task<Result<std::vector<uint32_t>>> propose(std::span<const uint32_t> text, uint32_t most) = 0;
};

}  // namespace doppler::engine
