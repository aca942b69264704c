#include "engine/scheduler/step_costs.h"

#include <algorithm>

#include "base/text.h"

namespace doppler::engine {
namespace {

// Old steps count less, since depth and load change. After so many measured steps an old one counts half.
constexpr double kRemembered = 256;
// A guess for a GPU before the first measurement: the costs of a second row and of each further one.
constexpr double kSecondRow = 0.22, kFurtherRow = 0.07;

}  // namespace

void StepCosts::note(uint32_t rows, uint32_t steps, double seconds) {
  if (rows >= measured_.size() || steps == 0) return;
  Measured& of = measured_[rows];
  if (of.tickets++ == 0) return;  // the first replays of a plan take longer
  of.steps += steps;
  of.seconds += seconds;
  if (of.steps <= kRemembered) return;
  of.steps /= 2;
  of.seconds /= 2;
}

double StepCosts::ratio(uint32_t rows, uint32_t base) const {
  if (rows <= base) return 1;
  const auto guess = [](uint32_t n) { return n == 1 ? 1 : 1 + kSecondRow + kFurtherRow * (n - 2); };
  const double one = measured_[base].value();
  double cost = guess(rows) / guess(base);
  for (uint32_t n = base + 1; one > 0 && n < measured_.size(); ++n) {
    const double known = measured_[n].value() / one;
    if (known == 0) continue;
    // If only fewer rows were measured, each further row costs as much as those did.
    if (n <= rows) cost = 1 + (known - 1) * (n == rows ? 1 : static_cast<double>(rows - base) / (n - base));
  }
  return std::clamp<double>(cost, 1, static_cast<double>(rows) / base);
}

double StepCosts::beyond(double steps, double seconds) const {
  const double one = measured_[1].value();
  return one > 0 ? std::max(seconds / one - steps, 0.0) : 0;
}

double StepCosts::most(uint32_t rows) const {
  const bool is_known = rows < measured_.size() && measured_[rows].steps > 0 && measured_[1].steps > 0;
  return is_known ? of(rows) : std::max(rows, 1u);
}

std::string StepCosts::line() const {
  std::string rows, times;
  uint32_t kinds = 0;
  for (uint32_t n = 1; n < measured_.size(); ++n) {
    const double value = measured_[n].value();
    if (value == 0) continue;
    rows += format_text("%s%u", kinds == 0 ? "" : ", ", n);
    times += format_text("%s%.2f", kinds == 0 ? "" : ", ", value * 1e3);
    ++kinds;
  }
  return kinds < 2 ? "" : format_text("steps of %s rows take %s ms", rows.c_str(), times.c_str());
}

}  // namespace doppler::engine
