#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace doppler::bench {

double median(std::span<const double> samples) {
  if (samples.empty()) return 0;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  const size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

double mean(std::span<const double> samples) {
  if (samples.empty()) return 0;
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double stddev(std::span<const double> samples) {
  if (samples.size() < 2) return 0;
  const double middle = mean(samples);
  double sum = 0;
  for (const double sample : samples) sum += (sample - middle) * (sample - middle);
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

double least(std::span<const double> samples) {
  return samples.empty() ? 0 : *std::ranges::min_element(samples);
}
double most(std::span<const double> samples) {
  return samples.empty() ? 0 : *std::ranges::max_element(samples);
}

}  // namespace doppler::bench
