// A plan that DeviceModel records: its name, and what it is for.
#pragma once

#include <string>

#include "lowering/step_io.h"
#include "model/drafter.h"

namespace doppler::model {

struct PlanRow {
  std::string name;
  uint32_t max_rows = 1;
  lowering::LogitsRows logits_rows = lowering::LogitsRows::kLast;
  bool greedy = true;
  uint32_t max_keys = 0;
  bool only_persistent = false;      // only that lane uses it
  Drafter drafter = Drafter::kNone;  // of a step that evaluates a token and its drafts
  bool images = false;               // of a prompt whose rows may stand for pictures

  // Goes on from the token that the step before chose; a chunk of one row has its token from the host.
  bool is_decode() const { return name.starts_with("decode"); }
  bool is_draft() const { return drafter != Drafter::kNone; }
  // A model may have a next-token layer. Decode steps leave it out. Steps with another drafter do too.
  bool has_next(bool has_layer) const {
    return has_layer && !is_decode() && (!is_draft() || drafter == Drafter::kNextLayer);
  }
};

}  // namespace doppler::model
