// The costs of decode steps by their rows on this device, as the tickets of all requests show them. Drafts pay only if
// a step of more rows costs little more.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "kernels/common/step_tables.h"

namespace doppler::engine {

class StepCosts {
 public:
  // Notes a ticket of so many steps of `rows`. `seconds`: the time since the ticket before it.
  void note(uint32_t rows, uint32_t steps, double seconds);
  // The cost of a step of `rows`, in steps of one row: 1 to `rows`. It is a guess if no such step was measured.
  double of(uint32_t rows) const { return ratio(rows, 1); }
  // The cost of a step of `rows`, in steps of `base` rows: 1 to rows / base. Likewise a guess. base: at most `rows`.
  double ratio(uint32_t rows, uint32_t base) const;
  // Gives the same, but the most that it may be if no such step was measured.
  double most(uint32_t rows) const;
  // The steps of one row that these seconds hold beyond `steps`; 0 if none was measured.
  double beyond(double steps, double seconds) const;
  // Says "steps of 1, 2 and 4 rows take 1.93, 2.10 and 2.31 ms", or "" if only one kind was measured.
  std::string line() const;

 private:
  struct Measured {
    uint32_t tickets = 0;
    double steps = 0, seconds = 0;
    double value() const { return steps > 0 ? seconds / steps : 0; }
  };
  std::array<Measured, kernels::kMaxSequences + 1> measured_;  // by rows
};

}  // namespace doppler::engine
