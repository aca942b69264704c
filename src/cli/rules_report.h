// The rules of lowering that made a plan and those that refused, as a table and as JSON: for `graph` and `kernels
// --explain`.
#pragma once

#include <string>

#include "base/json.h"
#include "lowering/rule.h"

namespace doppler::cli {

// [{name, becomes, plain, on, applied, refused: [{node, nodes, reason}]}], in the order in which they are tried.
Json rules_json(const lowering::PlanReport& report, const lowering::RuleSet& rules);
std::string rules_text(const lowering::PlanReport& report, const lowering::RuleSet& rules);

}  // namespace doppler::cli
