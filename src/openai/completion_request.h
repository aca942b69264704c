// The body of a request of OpenAI's API as one of ours. Each wish of the body is fulfilled or refused by name: an
// unknown field that would change the answer is an error; the table in completion_request.cpp says which are harmless.
// Read next: completion_body.h, the way back.
#pragma once

#include <cstdint>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "doppler/scheduler.h"
#include "openai/chat_fields.h"

namespace doppler::openai {

enum class Endpoint : uint8_t { kChatCompletions, kCompletions };
inline constexpr const char* kChatPath = "/v1/chat/completions";
inline constexpr const char* kCompletionsPath = "/v1/completions";

inline constexpr uint32_t kMaxChoices = 8;

struct CompletionRequest {
  Endpoint endpoint = Endpoint::kChatCompletions;
  Request request;  // of the first choice; the others differ in the seed. For a chat without a prompt
  ChatFields chat;  // a chat's prompt is made from this (formats/chat_prompt.h)
  bool says_min_tokens = false;  // false: the options have a default
  uint32_t choices = 1;          // `n`: 1 to kMaxChoices
  std::string model;             // the name in the body; a caller with one model may ignore it
};

// `defaults`: what holds where the body does not say. Fields beyond OpenAI's: top_k, min_p, ignore_eos. The ranges of
// temperature and the like are the scheduler's to check. Errors: kInvalidInput, naming the field.
Result<CompletionRequest> read_completion(Endpoint endpoint, const Json& body,
                                          const GenerateOptions& defaults);

}  // namespace doppler::openai
