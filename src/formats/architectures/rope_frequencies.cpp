#include "formats/architectures/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace doppler::formats {
namespace {

constexpr double kTwoPi = 2 * std::numbers::pi;
constexpr double kLeastTurn =
    0x1p-64;  // of what kernels hold: 64 bits of a turn a position (kernels/rope/rope.h)

void scale_llama3(const RopeConfig& rope, std::vector<double>& inv_freq) {
  for (double& f : inv_freq) {
    const double wavelength = kTwoPi / f;
    if (wavelength > rope.original_ctx_len / rope.low_freq_factor) {
      f /= rope.factor;
    } else if (wavelength >= rope.original_ctx_len / rope.high_freq_factor) {
      const double smooth = (rope.original_ctx_len / wavelength - rope.low_freq_factor) /
                            (rope.high_freq_factor - rope.low_freq_factor);
      f = (1 - smooth) * f / rope.factor + smooth * f;
    }
  }
}

double yarn_mscale(double scale, double mscale) {
  return scale <= 1 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0;
}

double scale_yarn(const RopeConfig& rope, std::vector<double>& inv_freq) {
  const double dim = 2.0 * static_cast<double>(inv_freq.size());
  // The pair that makes `rotations` turns within the original context.
  const auto pair_of = [&](double rotations) {
    return dim * std::log(rope.original_ctx_len / (rotations * kTwoPi)) / (2 * std::log(rope.theta));
  };
  double low = pair_of(rope.beta_fast);
  double high = pair_of(rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;  // as transformers does, against a division by zero
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inv_freq[i] = inv_freq[i] / rope.factor * ramp + inv_freq[i] * (1 - ramp);
  }
  if (rope.attention_factor != 0) return rope.attention_factor;
  if (rope.mscale != 0 && rope.mscale_all_dim != 0) {
    return yarn_mscale(rope.factor, rope.mscale) / yarn_mscale(rope.factor, rope.mscale_all_dim);
  }
  return yarn_mscale(rope.factor, 1.0);
}

Result<double> scale_longrope(const RopeConfig& rope, uint32_t ctx_len, uint32_t max_ctx_len,
                              bool has_divisors, std::vector<double>& inv_freq) {
  const bool is_long = ctx_len > rope.original_ctx_len;
  const std::vector<double>& factors = is_long ? rope.long_factor : rope.short_factor;
  const bool is_done = has_divisors && factors.empty();
  if (!is_done && factors.size() != inv_freq.size()) {
    return fail(ErrorKind::kInvalidInput, "rope_scaling.%s has %zu entries, but %zu pairs rotate.",
                is_long ? "long_factor" : "short_factor", factors.size(), inv_freq.size());
  }
  for (size_t i = 0; i < factors.size(); ++i) inv_freq[i] /= factors[i];
  if (rope.attention_factor != 0) return rope.attention_factor;
  return longrope_attention_factor(max_ctx_len / rope.original_ctx_len, rope.original_ctx_len);
}

}  // namespace

double longrope_attention_factor(double factor, double original_ctx_len) {
  return factor <= 1 ? 1.0 : std::sqrt(1 + std::log(factor) / std::log(original_ctx_len));
}

std::string divisors_tensor(const RopeConfig& rope, uint32_t ctx_len) {
  if (rope.scaling != RopeScaling::kLongRope || rope.frequency_divisors.empty())
    return rope.frequency_divisors;
  return ctx_len > rope.original_ctx_len ? kLongFactors : kShortFactors;
}

Result<RopeFrequencies> rope_frequencies(const RopeConfig& rope, uint32_t ctx_len, uint32_t max_ctx_len,
                                         std::span<const float> divisors) {
  const uint32_t pairs = rope.rotary_dim / 2;
  RopeFrequencies out;
  out.inv_freq.resize(pairs);
  for (uint32_t i = 0; i < pairs; ++i) out.inv_freq[i] = std::pow(rope.theta, -2.0 * i / rope.rotary_dim);
  if (!divisors.empty()) {
    if (divisors.size() != pairs) {
      return fail(ErrorKind::kInvalidInput, "Tensor \"%s\" has %zu entries, but %u pairs rotate.",
                  divisors_tensor(rope, ctx_len).c_str(), divisors.size(), pairs);
    }
    for (uint32_t i = 0; i < pairs; ++i) out.inv_freq[i] /= static_cast<double>(divisors[i]);
  }
  double attention_factor = 1.0;
  switch (rope.scaling) {
    case RopeScaling::kNone:
    case RopeScaling::kDynamic:
      break;
    case RopeScaling::kLinear:
      for (double& f : out.inv_freq) f /= rope.factor;
      break;
    case RopeScaling::kLlama3:
      scale_llama3(rope, out.inv_freq);
      break;
    case RopeScaling::kYarn:
      attention_factor = scale_yarn(rope, out.inv_freq);
      break;
    case RopeScaling::kProportional:
      for (uint32_t i = 0; i < pairs; ++i) out.inv_freq[i] /= rope.factor;
      for (uint32_t i = static_cast<uint32_t>(rope.turning_part * pairs); i < pairs; ++i) out.inv_freq[i] = 0;
      break;
    case RopeScaling::kLongRope: {
      DP_TRY(attention_factor, scale_longrope(rope, ctx_len, max_ctx_len, !divisors.empty(), out.inv_freq));
      break;
    }
  }
  for (double& f : out.inv_freq) {
    if (f < kLeastTurn * kTwoPi) f = 0;
    if (!std::isfinite(f) || f < 0 || f >= kTwoPi) {
      return fail(ErrorKind::kInvalidInput,
                  "A rotary frequency is %g; allowed is 0 to below 2 pi. Check rope theta and scaling.", f);
    }
  }
  out.attention_factor = static_cast<float>(attention_factor);
  return out;
}

}  // namespace doppler::formats
