// sample_oracle.h.
#include "kernels/sample/sample_oracle.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace doppler::kernels::testing {
namespace {

constexpr double kExcluded = -1e30;

double prepared(const SampleInput& in, uint32_t id) {
  double l = in.logits[id];
  if (std::isnan(l) || l <= kExcluded) return kExcluded;
  l = std::min(l, 1e30) * in.logit_scale;
  if (in.softcap > 0) l = in.softcap * std::tanh(l / in.softcap);
  const double count = in.counts.empty() ? 0 : in.counts[id];
  if (count > 0) {
    l = l > 0 ? l / in.params.repeat_penalty : l * in.params.repeat_penalty;
    l -= in.params.presence_penalty + in.params.frequency_penalty * count;
  }
  for (const auto& [token, added] : in.bias) {
    if (token == id) l += std::max(double{added}, kExcluded);
  }
  return std::clamp(l, kExcluded, 1e30);
}

uint64_t weight(double l, double highest, double temperature) {
  if (l <= kExcluded / 10 && highest > kExcluded / 10) return 0;
  return static_cast<uint64_t>(std::llround(std::exp((l - highest) / std::max(temperature, 1e-7)) * 0x1p31));
}

// Point 3a of more.h: what the tokens lose, as biases.
void add_dry(SampleInput& in) {
  const SampleParams& p = in.params;
  if (!(p.dry_multiplier > 0)) return;
  const size_t range = p.dry_range == 0 ? kDryHistory : std::min(p.dry_range, kDryHistory);
  const std::vector<uint32_t> h(in.history.end() - std::min(in.history.size(), range), in.history.end());
  std::map<uint32_t, uint32_t> longest;
  for (size_t i = 1; i < h.size(); ++i) {
    uint32_t length = 0;
    while (length < std::min<size_t>(i, kDryLongest) && h[i - 1 - length] == h[h.size() - 1 - length] &&
           std::ranges::count(in.breakers, h[i - 1 - length]) == 0) {
      ++length;
    }
    longest[h[i]] = std::max(longest[h[i]], length);
  }
  for (const auto& [token, length] : longest) {
    if (length < p.dry_allowed_length) continue;
    const double penalty =
        p.dry_multiplier * std::pow(p.dry_base, static_cast<double>(length - p.dry_allowed_length));
    in.bias.emplace_back(token, static_cast<float>(-std::min(penalty, 1e30)));
  }
}

double deviation(const std::vector<double>& l) {
  double count = 0, sum = 0, squares = 0;
  for (const double value : l) {
    if (value <= kExcluded / 10) continue;
    count += 1, sum += value, squares += value * value;
  }
  return count == 0 ? 0 : std::sqrt(std::max(0.0, squares / count - sum / count * (sum / count)));
}

// The shortest run of ids whose weights reach `part` of the sum.
void keep_run(std::vector<uint32_t>& ids, const std::vector<double>& l, double highest, float part) {
  uint64_t sum = 0, running = 0;
  for (const uint32_t id : ids) sum += weight(l[id], highest, 1);
  const double goal = std::max(1.0, std::ceil(static_cast<double>(sum) * std::max(0.0f, part)));
  size_t count = 0;
  while (count < ids.size() && static_cast<double>(running) < goal) {
    running += weight(l[ids[count++]], highest, 1);
  }
  ids.resize(count);
}

// Sum of the weights at temperature 1, and their entropy.
std::pair<double, double> sum_and_entropy(const std::vector<uint32_t>& ids, const std::vector<double>& l) {
  const double highest = l[ids[0]];
  double sum = 0, weighted = 0;
  for (const uint32_t id : ids) {
    const double w = std::exp(l[id] - highest);
    sum += w;
    if (w > 0) weighted += w * (highest - l[id]);
  }
  return {sum, std::log(sum) + weighted / sum};
}

void keep_typical(std::vector<uint32_t>& ids, const std::vector<double>& l, float part) {
  const double highest = l[ids[0]];
  const auto [sum, entropy] = sum_and_entropy(ids, l);
  const auto distance = [&, log_sum = std::log(sum), h = entropy](uint32_t id) {
    return std::fabs(highest - l[id] + log_sum - h);
  };
  std::vector<uint32_t> typical = ids;
  std::ranges::sort(typical, [&](uint32_t a, uint32_t b) {
    return distance(a) != distance(b) ? distance(a) < distance(b) : a < b;
  });
  keep_run(typical, l, highest, part);
  const std::set<uint32_t> kept(typical.begin(), typical.end());
  std::erase_if(ids, [&](uint32_t id) { return !kept.contains(id); });
}

void leave_top_choices(std::vector<uint32_t>& ids, const std::vector<double>& l, float threshold) {
  const double sum = sum_and_entropy(ids, l).first;
  size_t above = 0;
  while (above < ids.size() && std::exp(l[ids[above]] - l[ids[0]]) / sum >= threshold) ++above;
  if (above >= 2) ids.erase(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(above) - 1);
}

double dynamic_temperature(const std::vector<uint32_t>& ids, const std::vector<double>& l,
                           const SampleParams& p) {
  const auto count =
      static_cast<double>(std::ranges::count_if(ids, [&](uint32_t id) { return l[id] > -1e29; }));
  if (count < 2) return p.temperature;
  const double low = std::max(0.0f, p.temperature - p.dynatemp_range);
  const double part = sum_and_entropy(ids, l).second / std::log(count);
  const double high = double{p.temperature} + p.dynatemp_range;
  return low + (high - low) * std::pow(std::clamp(part, 1e-6, 1.0), p.dynatemp_exponent);
}

}  // namespace

SampleOracle sample_oracle(const SampleInput& given) {
  SampleInput in = given;
  add_dry(in);
  if (in.generated < in.params.min_tokens) {
    for (const uint32_t token : in.stop_tokens) in.bias.emplace_back(token, -HUGE_VALF);
  }
  const SampleParams& p = in.params;
  const auto vocab = static_cast<uint32_t>(in.logits.size());
  std::vector<double> l(vocab);
  for (uint32_t id = 0; id < vocab; ++id) l[id] = prepared(in, id);
  std::vector<uint32_t> ids(vocab);
  std::iota(ids.begin(), ids.end(), 0u);
  std::stable_sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) { return l[a] > l[b]; });
  const double highest = l[ids[0]];
  const bool mirostat = p.mirostat_tau > 0;

  if (p.top_n_sigma > 0 && !mirostat) {
    const double floor = highest - p.top_n_sigma * deviation(l);
    std::erase_if(ids, [&](uint32_t id) { return l[id] < floor; });
  }
  if (p.top_k > 0 && p.top_k < ids.size() && !mirostat) ids.resize(p.top_k);
  if (p.typical_p < 1 && !mirostat) keep_typical(ids, l, p.typical_p);
  if (p.top_p < 1 && !mirostat) keep_run(ids, l, highest, p.top_p);
  if (p.min_p > 0 && !mirostat) {
    std::erase_if(ids, [&](uint32_t id) { return std::exp(l[id] - highest) < p.min_p; });
  }
  const bool xtc = p.xtc_probability > 0 && in.xtc_random < p.xtc_probability * 0x1p32;
  if (xtc && p.xtc_threshold <= 0.5f && !mirostat) leave_top_choices(ids, l, p.xtc_threshold);

  double temperature = p.temperature;
  if (p.dynatemp_range > 0 && !mirostat) temperature = dynamic_temperature(ids, l, p);
  SampleOracle oracle;
  double sum = 0;
  for (const uint32_t id : ids) sum += std::exp((l[id] - l[ids[0]]) / std::max(temperature, 1e-7));
  for (const uint32_t id : ids) {
    const double probability = std::exp((l[id] - l[ids[0]]) / std::max(temperature, 1e-7)) / sum;
    if (mirostat && id != ids[0] && -std::log2(probability) > in.mu) continue;
    if (const uint64_t w = weight(l[id], l[ids[0]], temperature)) {
      oracle.kept.push_back(id);
      oracle.weights.push_back(w);
    }
  }
  return oracle;
}

float SampleOracle::mu_after(const SampleInput& in, uint32_t token) const {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const size_t at = std::ranges::find(kept, token) - kept.begin();
  const double surprise = -std::log2(static_cast<double>(weights.at(at)) / sum);
  return static_cast<float>(in.mu - in.params.mirostat_eta * (surprise - in.params.mirostat_tau));
}

uint32_t SampleOracle::draw(uint32_t random) const {
  const uint64_t sum = std::accumulate(weights.begin(), weights.end(), uint64_t{0});
  const uint64_t goal = (sum >> 32) * random + (((sum & 0xFFFFFFFFu) * random) >> 32);
  uint64_t running = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    running += weights[i];
    if (running > goal) return kept[i];
  }
  return kept.back();
}

std::array<uint32_t, 4> philox4x32_10(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c[0], b = uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(a)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

}  // namespace doppler::kernels::testing
