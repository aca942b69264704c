// Ctrl-C ends the generation, or what else is under way, not the program; a second one ends the program.
#pragma once

#include <atomic>

#include "doppler/doppler.h"

namespace doppler::cli {

class InterruptGuard {
 public:
  explicit InterruptGuard(Session& session);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

// For work that looks whether it was interrupted.
class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;
  bool raised() const;
  const std::atomic<bool>* flag() const;  // the same
};

}  // namespace doppler::cli
