// A plan that PlanRunner records: its name, and what it is for.
#pragma once

#include <string>

#include "lowering/step_io.h"

namespace doppler::model {

struct PlanRow {
  std::string name;
  uint32_t max_rows = 1;
  lowering::LogitsRows logits_rows = lowering::LogitsRows::kLast;
  bool greedy = true;
  uint32_t max_keys = 0;
  bool only_persistent = false;  // there for that lane alone
  bool images = false;           // of a prompt's rows that may stand for pictures

  // Goes on from the token that the step before chose; a chunk of one row has its token from the host.
  bool is_decode() const { return name.starts_with("decode"); }
  // Evaluates a token and a draft.
  bool is_draft() const { return name.starts_with("draft"); }
  // Of a model that drafts: a decode step of one row leaves the next-token layer out.
  bool has_next(bool drafts) const { return drafts && !is_decode(); }
};

}  // namespace doppler::model
