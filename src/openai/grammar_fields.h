// The fields of a body that say what an answer must be: OpenAI's response_format, and the names that other servers gave
// to grammars (llama.cpp's grammar and json_schema, vLLM's guided_... and structured_outputs).
#pragma once

#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "base/result.h"
#include "doppler/doppler.h"

namespace doppler::openai {

bool is_grammar_field(std::string_view name);

// Leaves `out` where the body asks for none. Errors: kInvalidInput or kUnsupported, naming the field.
Result<void> read_grammar(const Json& body, Grammar* out);

// One of the texts, as a regular expression.
std::string regex_of_choices(const Json& texts);

}  // namespace doppler::openai
