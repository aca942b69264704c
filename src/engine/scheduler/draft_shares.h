// Deals the rows of a step to sequences that draft together. A pure function of what each has and of what steps cost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/scheduler/step_costs.h"

namespace doppler::engine {

// A sequence that decodes. Its step has a row without drafts, and one more for each draft.
struct DraftOffer {
  uint32_t drafts = 0;    // that it has
  double acceptance = 0;  // the share of its drafts that were right
  double account = 0;     // the tokens that it may lose (DraftPolicy::account)
  bool always = false;    // it drafts whatever that costs
};

// A step with drafts must be so much faster than one without.
inline constexpr double kLeastGain = 1.03;

// The drafts that each may have in the next step. All 0: steps without drafts are faster, or those who draft cannot pay
// for the others' loss. kinds: the rows of all sequences together that there are plans for, ascending.
std::vector<uint32_t> share_drafts(std::span<const DraftOffer> offers, std::span<const uint32_t> kinds,
                                   const StepCosts& costs);

// The tokens that each loses by a step with so many drafts, if all are wrong. The step takes longer for all.
std::vector<double> losses_of(std::span<const uint32_t> drafts, const StepCosts& costs);

}  // namespace doppler::engine
