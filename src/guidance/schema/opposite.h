// The schema of all that another schema does not allow, as far as llguidance's keywords can say it exactly.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "guidance/schema/document.h"

namespace doppler::guidance {

// Why there is none: `keyword` has no opposite here.
struct NoOpposite {
  std::string keyword;
};

// The opposite of `schema` among instances of `given`. It may allow anything outside of `given`. Nothing: `why` says
// the reason.
std::optional<Json> opposite(const Document& document, const Json& schema, const Schemas& given,
                             NoOpposite& why);

// A regular expression, with anchors, for all texts but these.
std::string pattern_of_others(const std::set<std::string>& texts);
// The text as a regular expression.
std::string escaped_pattern(std::string_view text);
// The few texts that a pattern of plain letters allows: "^(a|b)$". Nothing: it is another pattern.
std::optional<std::set<std::string>> texts_of_pattern(std::string_view pattern);

}  // namespace doppler::guidance
