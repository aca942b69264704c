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

// Sets what the body says and leaves the rest. -1 switches off top_k, top_n_sigma and dry_range, means no limit for
// max_tokens, and a seed of the caller's choice. The scheduler checks the ranges of temperature and the like. Errors:
// kInvalidInput, naming the field.
Result<void> read_generate_options(const Json& body, GenerateOptions* options);

// Says whether the body has the field with a value that is not null.
bool says(const Json& body, const char* key);
// Settles min_tokens of a request with a grammar: a default yields, and a value of the body (`is_own`) is an error.
Result<void> settle_min_tokens(bool is_own, GenerateOptions* options);

// A whole number within bounds, if it is there.
Result<void> read_count(const Json& body, const char* key, int64_t least, int64_t most, uint32_t* out);

}  // namespace doppler::openai
