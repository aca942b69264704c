#include "openai/completion_body.h"

#include "base/json.h"
#include "openai/answer_writer.h"

namespace doppler::openai {
namespace {

ChoiceAnswer choice_answer(const CompletionAnswer& answer, const Generation& generation) {
  ChoiceAnswer out{.stop = generation.stop};
  OutputParser parser(answer.parser);
  for (const AnswerEvent& event : parser.push(answer.forced + generation.text)) out.add(event);
  for (const AnswerEvent& event : parser.finish()) out.add(event);
  if (answer.token_text) tell_tokens(generation, answer.token_text, &out.tokens);
  return out;
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
  std::vector<ChoiceAnswer> choices;
  Usage usage;
  for (const Generation& generation : answer.choices) {
    choices.push_back(choice_answer(answer, generation));
    usage.generated_tokens += generation.timings.generated_tokens;
    usage.drafted_tokens += generation.timings.drafted_tokens;
    usage.accepted_tokens += generation.timings.accepted_tokens;
  }
  if (!answer.choices.empty()) {
    usage.prompt_tokens = answer.choices[0].timings.prompt_tokens;
    usage.cached_tokens = answer.choices[0].timings.cached_tokens;
  }
  const bool chat = answer.endpoint == Endpoint::kChatCompletions;
  const auto writer = chat ? make_chat_writer({}) : make_completion_writer({});
  Json body =
      writer->whole({.id = answer.id, .model = answer.model, .created = answer.created}, choices, usage);
  for (size_t i = 0; answer.token_ids && i < answer.choices.size(); ++i)
    body["choices"][i]["token_ids"] = answer.choices[i].tokens;
  return body;
}

}  // namespace doppler::openai
