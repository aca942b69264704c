// Guesses the next tokens of a text by work of its own, which the step with these drafts waits for: a draft model
// (engine/draft_model.h).
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
  // At most `most` tokens after the text, fewer if there is no place for more. `text` must stay until the
  // task is done. Errors are the device's.
  virtual Task<Result<std::vector<uint32_t>>> propose(std::span<const uint32_t> text, uint32_t most) = 0;
};

}  // namespace doppler::engine
