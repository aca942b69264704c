// Numbers for kernel tests: deterministic data with outliers, and the distance to a double-precision oracle.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace doppler::kernels::testing {

// A small generator with a fixed meaning on every platform (xorshift64*, Vigna 2016), unlike <random>'s
// distributions.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull + 0x1234567ull) {}
  uint64_t next();
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>((next() >> 32) * limit >> 32); }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  double normal();

 private:
  uint64_t state_;
};

// Normal values, one in 64 multiplied by 30, as activations of real models have.
std::vector<float> random_floats(size_t count, uint64_t seed, float scale = 1.0f);

// |got - want| / |want| in the Euclidean norm; infinity if a value of `got` is not finite where `want` is.
double rel_l2(std::span<const float> got, std::span<const double> want);
double rel_l2(std::span<const float> got, std::span<const float> want);

}  // namespace doppler::kernels::testing
