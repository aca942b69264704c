// The opposites of keywords that restrict only one value: types, constants, bounds, lengths, patterns of words. Each
// function adds schemas for the instances that the keyword excludes, and returns false if it cannot express them.
#pragma once

#include <string>

#include "guidance/schema/document.h"

namespace doppler::guidance {

// `types`: those that an instance may have.
bool add_types(const Json& value, uint8_t types, Json& out);
bool add_values(const Json& values, uint8_t types, Json& out);
// "minimum" and its like. False: the key is no bound.
bool add_bound(const Json& schema, const std::string& key, const Json& value, Json& out);
// A type whose count goes up to the value, or from it on: `step` is -1 or 1.
bool add_count(const char* type, const char* key, const Json& value, int step, Json& out);
bool add_pattern(const Json& value, Json& out);

// {"type": type, key: value} and {key: items}.
Json with(const char* type, const char* key, Json value);
Json list_of(const char* key, Json items);

}  // namespace doppler::guidance
