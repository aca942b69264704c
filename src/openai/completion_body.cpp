#include "openai/completion_body.h"

#include "base/json.h"

namespace doppler::openai {
namespace {

Json usage_json(std::span<const Generation> choices) {
  uint64_t generated = 0;
  for (const Generation& choice : choices) generated += choice.timings.generated_tokens;
  const uint64_t prompt = choices.empty() ? 0 : choices[0].timings.prompt_tokens;
  const uint64_t cached = choices.empty() ? 0 : choices[0].timings.cached_tokens;
  return {{"prompt_tokens", prompt},
          {"completion_tokens", generated},
          {"total_tokens", prompt + generated},
          {"prompt_tokens_details", {{"cached_tokens", cached}}}};
}

}  // namespace

const char* finish_reason(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfText:
    case StopReason::kStopString:
    case StopReason::kCancelled:
      return "stop";
    case StopReason::kTokenLimit:
    case StopReason::kContextFull:
      return "length";
  }
  return "stop";
}

Json completion_body(const CompletionAnswer& answer) {
  const bool chat = answer.endpoint == Endpoint::kChatCompletions;
  Json choices = Json::array();
  for (const Generation& generation : answer.choices) {
    Json choice = {{"index", choices.size()}};
    if (chat) {
      choice["message"] = {{"role", "assistant"}, {"content", generation.text}};
    } else {
      choice["text"] = generation.text;
    }
    if (answer.token_text) {
      std::vector<ToldToken> tokens;
      tell_tokens(generation, answer.token_text, &tokens);
      choice["logprobs"] = logprobs_json(answer.endpoint, tokens);
    }
    choice["finish_reason"] = finish_reason(generation.stop);
    choices.push_back(std::move(choice));
  }
  return {{"id", (chat ? "chatcmpl-" : "cmpl-") + answer.id},
          {"object", chat ? "chat.completion" : "text_completion"},
          {"created", answer.created},
          {"model", answer.model},
          {"choices", std::move(choices)},
          {"usage", usage_json(answer.choices)}};
}

}  // namespace doppler::openai
