// The drafters, which guess next tokens, and the plans of steps that evaluate the guesses. Each row of the table here
// is a drafter and its plans. Read next: kernels/step/draft.h, draft_plans.h.
#pragma once

#include <cstdint>

#include "kernels/step/draft_text.h"

namespace doppler::model {

enum class Drafter : uint8_t {
  kNone,
  kLookup,     // what followed the text's last tokens where they stood before (kernels/step/lookup.h)
  kNextLayer,  // the model's own next-token layer (layers/next_token.h)
  kModel,      // a small model of the same vocabulary (engine/draft_model.h), by way of kGiven
  kGiven,      // the host, step by step: for a draft model, and if each row needs a mask
};
const char* drafter_name(Drafter drafter);

// The choice of a drafter for a model's load or for a generation.
enum class Drafting : uint8_t {
  kAuto,  // a draft model if it was loaded, or else the next-token layer if it is there, or else lookup
  kOff,
  kLookup,
  kNext,  // it is an error if the model cannot
  kModel,
};
// The loaded drafters besides lookup, which is always there.
struct LoadedDrafters {
  bool next_layer = false, model = false;
};
inline Drafter drafter_of(Drafting drafting, const LoadedDrafters& loaded) {
  switch (drafting) {
    case Drafting::kOff:
      return Drafter::kNone;
    case Drafting::kLookup:
      return Drafter::kLookup;
    case Drafting::kNext:
      return loaded.next_layer ? Drafter::kNextLayer : Drafter::kNone;
    case Drafting::kModel:
      return loaded.model ? Drafter::kModel : Drafter::kNone;
    case Drafting::kAuto:
      break;
  }
  if (loaded.model) return Drafter::kModel;
  return loaded.next_layer ? Drafter::kNextLayer : Drafter::kLookup;
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
    // Steps of several sequences have these too.
    {Drafter::kGiven, 16},
    {Drafter::kGiven, 32},
    {Drafter::kGiven, 64},
};

}  // namespace doppler::model
