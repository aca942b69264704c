// Fields of a config.json with the range checks that sizes need: for the general reader (read_huggingface.cpp) and for
// the readers of families' own fields. Read next: base/json.h, which has strings and truths.
#pragma once

#include <optional>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"

namespace doppler::formats {

// Empty: absent or null. Errors name the field, what it holds and what is allowed.
Result<std::optional<uint32_t>> get_count(const Json& json, const char* key);
Result<uint32_t> required_count(const Json& json, const char* key);
Result<double> number_or(const Json& json, const char* key, double otherwise);
Result<bool> bool_or(const Json& json, const char* key, bool otherwise);
// Empty: absent, null or a list of nothing.
Result<std::vector<double>> get_numbers(const Json& json, const char* key);

}  // namespace doppler::formats
