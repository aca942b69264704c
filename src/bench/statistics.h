// Figures of a handful of samples. Without samples all figures are 0.
#pragma once

#include <span>

namespace doppler::bench {

double median(std::span<const double> samples);
double mean(std::span<const double> samples);
double stddev(std::span<const double> samples);  // of the samples (n - 1); 0 for one
double least(std::span<const double> samples);
double most(std::span<const double> samples);

}  // namespace doppler::bench
