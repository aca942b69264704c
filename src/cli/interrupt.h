// Ctrl-C ends the generation, not the program; a second one ends the program.
#pragma once

#include "doppler/doppler.h"

namespace doppler::cli {

class InterruptGuard {
 public:
  explicit InterruptGuard(Session& session);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

}  // namespace doppler::cli
