#include "engine/scheduler/draft_shares.h"

#include <algorithm>
#include <numeric>

namespace doppler::engine {
namespace {

struct Shares {
  std::vector<uint32_t> drafts;
  double tokens = 0;  // that the step gives on average
};

uint32_t sum_of(std::span<const uint32_t> drafts) {
  return std::accumulate(drafts.begin(), drafts.end(), uint32_t{0});
}

// Gives `rows` one after the other to the draft that is most likely right.
Shares deal(std::span<const DraftOffer> offers, uint32_t rows) {
  Shares out{.drafts = std::vector<uint32_t>(offers.size(), 0), .tokens = static_cast<double>(offers.size())};
  std::vector<double> chances;  // of each one's next draft
  for (const DraftOffer& offer : offers) chances.push_back(offer.acceptance);
  for (; rows > 0; --rows) {
    size_t best = offers.size();
    for (size_t i = 0; i < offers.size(); ++i) {
      if (out.drafts[i] == offers[i].drafts) continue;
      if (best == offers.size() || chances[i] > chances[best]) best = i;
    }
    if (best == offers.size()) break;
    ++out.drafts[best];
    out.tokens += chances[best];
    chances[best] *= offers[best].acceptance;
  }
  return out;
}

// Leaves out those whose accounts do not bear their losses, until all others' do.
Shares deal_paid(std::vector<DraftOffer> offers, uint32_t rows, const StepCosts& costs) {
  for (;;) {
    const Shares shares = deal(offers, rows);
    const std::vector<double> losses = losses_of(shares.drafts, costs);
    bool all_pay = true;
    for (size_t i = 0; i < offers.size(); ++i) {
      if (shares.drafts[i] == 0 || losses[i] <= offers[i].account) continue;
      offers[i].drafts = 0;
      all_pay = false;
    }
    if (all_pay) return shares;
  }
}

}  // namespace

std::vector<double> losses_of(std::span<const uint32_t> drafts, const StepCosts& costs) {
  std::vector<double> out(drafts.size(), 0);
  const uint32_t all = sum_of(drafts), plain = static_cast<uint32_t>(drafts.size());
  if (all == 0) return out;
  const double loss = plain * (costs.ratio(plain + all, plain) - 1);
  for (size_t i = 0; i < drafts.size(); ++i) out[i] = loss * drafts[i] / all;
  return out;
}

std::vector<uint32_t> share_drafts(std::span<const DraftOffer> offers, std::span<const uint32_t> kinds,
                                   const StepCosts& costs) {
  const auto plain = static_cast<uint32_t>(offers.size());
  std::vector<uint32_t> best(offers.size(), 0);
  if (kinds.empty() || kinds.back() <= plain) return best;
  if (std::ranges::any_of(offers, &DraftOffer::always)) {
    std::vector<DraftOffer> those(offers.begin(), offers.end());
    for (DraftOffer& offer : those) offer.drafts = offer.always ? offer.drafts : 0;
    return deal(those, kinds.back() - plain).drafts;
  }
  double best_gain = kLeastGain;
  for (const uint32_t rows : kinds) {
    if (rows <= plain) continue;
    const Shares shares = deal_paid({offers.begin(), offers.end()}, rows - plain, costs);
    const uint32_t all = sum_of(shares.drafts);
    const double gain = shares.tokens / plain / costs.ratio(plain + all, plain);
    if (all == 0 || gain <= best_gain) continue;
    best_gain = gain;
    best = shares.drafts;
  }
  return best;
}

}  // namespace doppler::engine
