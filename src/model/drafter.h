// Who guesses the next tokens of a sequence, and the plans of steps that evaluate the guesses. A drafter is a property of
// a plan: the rows of this table. Read next: kernels/step/draft.h, draft_plans.h.
#pragma once

#include <cstdint>

#include "kernels/step/draft_text.h"

namespace doppler::model {

enum class Drafter : uint8_t {
  kNone,
  kLookup,     // what followed the text's last tokens where they stood before (kernels/step/lookup.h)
  kNextLayer,  // the model's own next-token layer (layers/next_token.h)
  kGiven,      // the host, step by step: where a mask must be made for each row
};
const char* drafter_name(Drafter drafter);

// What a model is loaded for, and what a generation asks for.
enum class Drafting : uint8_t {
  kAuto,  // the next-token layer, if it is there and nothing speaks against it; or else lookup
  kOff,
  kLookup,
  kNext,  // what speaks against it is an error
};
// `has_next_layer`: it was loaded.
inline Drafter drafter_of(Drafting drafting, bool has_next_layer) {
  if (drafting == Drafting::kOff) return Drafter::kNone;
  if (drafting == Drafting::kLookup) return Drafter::kLookup;
  if (has_next_layer) return Drafter::kNextLayer;
  return drafting == Drafting::kNext ? Drafter::kNone : Drafter::kLookup;
}

// Steps of so many rows: a token and its drafts.
struct DraftKind {
  Drafter drafter = Drafter::kNone;
  uint32_t rows = 1;
};
inline constexpr DraftKind kDraftKinds[] = {
    {Drafter::kNextLayer, 2},
    {Drafter::kLookup, 2},
    {Drafter::kLookup, 4},
    {Drafter::kLookup, kernels::kMostDraftRows},
    {Drafter::kGiven, 2},
    {Drafter::kGiven, 4},
    {Drafter::kGiven, kernels::kMostDraftRows},
};

}  // namespace doppler::model
