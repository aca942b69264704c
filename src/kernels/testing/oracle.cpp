// oracle.h: test data and distances.
#include "kernels/testing/oracle.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace doppler::kernels::testing {

uint64_t Random::next() {
  state_ ^= state_ >> 12;
  state_ ^= state_ << 25;
  state_ ^= state_ >> 27;
  return state_ * 0x2545F4914F6CDD1Dull;
}

double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));  // Box and Muller 1958
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

std::vector<float> random_floats(size_t count, uint64_t seed, float scale) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(random.normal()) * scale;
    if (random.below(64) == 0) value *= 30;
  }
  return values;
}

double rel_l2(std::span<const float> got, std::span<const double> want) {
  if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i]) && std::isfinite(want[i])) return std::numeric_limits<double>::infinity();
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  if (norm == 0) return std::sqrt(difference);
  return std::sqrt(difference / norm);
}

double rel_l2(std::span<const float> got, std::span<const float> want) {
  const std::vector<double> wide(want.begin(), want.end());
  return rel_l2(got, wide);
}

}  // namespace doppler::kernels::testing
