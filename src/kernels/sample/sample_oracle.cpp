// sample_oracle.h.
#include "kernels/sample/sample_oracle.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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

}  // namespace

SampleOracle sample_oracle(const SampleInput& in) {
  const auto vocab = static_cast<uint32_t>(in.logits.size());
  std::vector<double> l(vocab);
  for (uint32_t id = 0; id < vocab; ++id) l[id] = prepared(in, id);
  std::vector<uint32_t> ids(vocab);
  std::iota(ids.begin(), ids.end(), 0u);
  std::stable_sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) { return l[a] > l[b]; });
  const double highest = l[ids[0]];

  if (in.params.top_k > 0 && in.params.top_k < vocab) ids.resize(in.params.top_k);
  if (in.params.top_p < 1) {
    uint64_t sum = 0, running = 0;
    for (uint32_t id : ids) sum += weight(l[id], highest, 1);
    const double goal = std::max(1.0, std::ceil(static_cast<double>(sum) * std::max(0.0f, in.params.top_p)));
    size_t count = 0;
    while (count < ids.size() && static_cast<double>(running) < goal)
      running += weight(l[ids[count++]], highest, 1);
    ids.resize(count);
  }
  SampleOracle oracle;
  for (uint32_t id : ids) {
    if (in.params.min_p > 0 && std::exp(l[id] - highest) < in.params.min_p) continue;
    if (const uint64_t w = weight(l[id], highest, in.params.temperature)) {
      oracle.kept.push_back(id);
      oracle.weights.push_back(w);
    }
  }
  return oracle;
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
