// The fields of a body that say how to generate, for every API whose bodies have them: sampling, limits, stops. Fields
// beyond OpenAI's have the names that other servers gave them, or those of our own flags.
// Read next: completion_request.h, served_request.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "doppler/doppler.h"

namespace doppler::openai {

bool is_generate_option(std::string_view name);
std::vector<std::string> generate_option_names();

inline constexpr int64_t kRandomSeed = -1;

// Sets what the body says and leaves the rest; -1 is off for top_k, top_n_sigma and dry_range, no limit for max_tokens,
// and a seed of whoever reads it. The ranges of temperature and the like are the scheduler's to check. Errors:
// kInvalidInput, naming the field.
Result<void> read_generate_options(const Json& body, GenerateOptions* options);

// Whether the body has the field, and not as null.
bool says(const Json& body, const char* key);
// Settles min_tokens of a request with a grammar: a default yields. Error: the body's own (`is_own`).
Result<void> settle_min_tokens(bool is_own, GenerateOptions* options);

// A whole number within bounds, if it is there.
Result<void> read_count(const Json& body, const char* key, int64_t least, int64_t most, uint32_t* out);

}  // namespace doppler::openai
