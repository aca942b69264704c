// The body of an answer in OpenAI's API.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/json_fwd.h"
#include "doppler/doppler.h"
#include "openai/completion_request.h"
#include "openai/formats/output_parser.h"
#include "openai/token_probs.h"

namespace doppler::openai {

struct CompletionAnswer {
  Endpoint endpoint = Endpoint::kChatCompletions;
  std::string id;       // unique among answers, such as "7"
  std::string model;    // that answered
  int64_t created = 0;  // seconds since 1970
  std::span<const Generation> choices;
  TokenText token_text = {};        // if choices have log-probabilities
  bool token_ids = false;           // in each choice, of a model whose tokens have no text
  OutputParser::Setup parser = {};  // of a chat: what its texts are read by
  std::string forced = {};          // text before each, which the prompt had
};

// "stop" after an end token or a stop text, "length" after a limit.
const char* finish_reason(StopReason reason);

// {"id", "object", "created", "model", "choices", "usage"}. The prompt counts once, however many choices there are.
Json completion_body(const CompletionAnswer& answer);

}  // namespace doppler::openai
