// The log-probabilities of an answer's tokens as OpenAI's APIs tell them: which a body asks for, and how each API
// writes them. An end token is none of the answer's tokens; those of reasoning, of calls and of a stop text are. Read
// next: answer_writer.h.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/result.h"
#include "doppler/doppler.h"
#include "openai/completion_request.h"

namespace doppler::openai {

// Reads "logprobs": true and "top_logprobs" of chats, and "logprobs", a number, of completions. Errors: kInvalidInput,
// naming the field.
Result<void> read_logprobs(Endpoint endpoint, const Json& body, GenerateOptions* options);

// A token's bytes, which may be half a character.
using TokenText = std::function<std::string(int32_t)>;

struct ToldToken {
  std::string text;
  float logprob = 0;
  std::vector<std::pair<std::string, float>> top;
  uint64_t offset = 0;  // characters of the answer before it
};

// Adds those of the generation's tokens that `out` does not have yet.
void tell_tokens(const Generation& generation, const TokenText& text_of, std::vector<ToldToken>* out);

// The field "logprobs" of a choice. Null if there are no tokens.
Json logprobs_json(Endpoint endpoint, std::span<const ToldToken> tokens);

}  // namespace doppler::openai
