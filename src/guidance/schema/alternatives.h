// Keywords as unions: "if", "oneOf", "uniqueItems", "contains", "propertyNames" and "unevaluated..." restrict an
// instance together with the schemas around them. Each function is given what else holds of the instance.
#pragma once

#include <optional>

#include "guidance/schema/opposite.h"

namespace doppler::guidance {

// A schema that says the same, or nothing if there is none; `why` may say which keyword is to blame.
using Said = std::optional<Json>;

Said say_condition(const Document& document, const Json& schema, const Schemas& given, NoOpposite& why);
Said say_one_of(const Document& document, const Json& branches, const Schemas& given, NoOpposite& why);
Said say_dependencies(const Document& document, const Json& dependencies, const Schemas& given);
Said say_unique_items(const Document& document, const Json& schema, const Schemas& given);
Said say_contains(const Document& document, const Json& schema, const Schemas& given);
Said say_property_names(const Document& document, const Json& names, const Schemas& given);
Said say_unevaluated_properties(const Document& document, const Json& rest, const Schemas& given);
Said say_unevaluated_items(const Document& document, const Json& rest, const Schemas& given);

// "minProperties" and "maxProperties" beside properties that may be absent. Nothing: the library is better at it.
Said say_property_count(const Document& document, const Json& schema, const std::string& key,
                        const Schemas& given);
// "minProperties" asks for several names that the schema does not mention: the library counts one that comes twice as
// two, a reader of JSON as one.
bool may_count_a_name_twice(const Document& document, const Json& schema, const Schemas& given);
// The pattern that every name has ("", ".*"), among these; empty: there is none.
std::optional<std::string> pattern_of_all(const Json& patterns);

Json union_of(Json options);  // "anyOf" of a list; false of none
Json both_of(Json a, Json b);

}  // namespace doppler::guidance
