// Two schemas that an instance may fulfil at once. "No" is a proof; "yes" may also mean that no proof was found.
#pragma once

#include "guidance/schema/document.h"

namespace doppler::guidance {

bool may_overlap(const Document& document, const Schemas& a, const Schemas& b);

// The schemas of a property, if it is there.
Schemas property_schemas(const Document& document, const Schemas& schemas, std::string_view name);
bool is_required(const Document& document, const Schemas& schemas, std::string_view name);
// The names that objects of the schemas may have, if these are all that "additionalProperties": false leaves.
bool has_closed_names(const Document& document, const Schemas& schemas, std::vector<std::string>& names);

}  // namespace doppler::guidance
