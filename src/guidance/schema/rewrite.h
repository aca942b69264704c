// JSON schemas in the keywords that llguidance has: "not", "if", "oneOf" with branches that overlap and others become
// "anyOf", "allOf", "required" and the like, which allow the very same instances. Unknown formats are annotations and
// go away.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace doppler::guidance {

// `schema` is an object. Error (kInvalidInput): a keyword at a place, which the sentence names, cannot be said so, and
// "x-guidance" does not ask to be lenient about it.
Result<Json> rewrite_schema(const Json& schema);

// The same for each "%json {...}" of a Lark grammar.
Result<std::string> rewrite_embedded_schemas(std::string_view lark);

}  // namespace doppler::guidance
