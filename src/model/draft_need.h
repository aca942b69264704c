// The abilities that steps with drafts need: the key of their plans (draft_plans.h).
#pragma once

#include "model/drafter.h"
#include "model/generation.h"

namespace doppler::model {

struct DraftNeed {
  Drafter drafter = Drafter::kNone;
  bool greedy = true;      // takes_greedy_plan()
  SamplerParts parts;      // of a choice that is not greedy
  bool penalties = false;  // likewise
  bool operator==(const DraftNeed&) const = default;
};
// The need of steps of one sequence. Its drafter is kNone if the generation does not draft.
inline DraftNeed draft_need_of(const GenerationSettings& settings) {
  const bool greedy = takes_greedy_plan(settings),
             is_given = settings.masked || settings.drafter == Drafter::kModel;
  const bool drafts = settings.drafter != Drafter::kNone && refuse_drafts(settings).empty();
  return {.drafter = !drafts    ? Drafter::kNone
                     : is_given ? Drafter::kGiven
                                : settings.drafter,
          .greedy = greedy,
          .parts = greedy ? SamplerParts() : parts_of(settings),
          .penalties = has_penalties(settings)};
}
// Says whether plans for `a` also serve steps that need `b`.
inline bool covers(const DraftNeed& a, const DraftNeed& b) {
  return a.drafter == b.drafter && (!a.greedy || b.greedy) && (a.parts | b.parts) == a.parts &&
         (a.penalties || !b.penalties);
}
// The need of steps of several sequences, in which the host gives all drafts.
inline DraftNeed together(const DraftNeed& a, const DraftNeed& b) {
  return {.drafter = Drafter::kGiven,
          .greedy = a.greedy && b.greedy,
          .parts = a.parts | b.parts,
          .penalties = a.penalties || b.penalties};
}

}  // namespace doppler::model
