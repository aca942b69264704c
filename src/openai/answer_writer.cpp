#include "openai/answer_writer.h"

#include <random>
#include <utility>

#include "openai/completion_body.h"

namespace doppler::openai {
namespace {

// Both of OpenAI's old APIs: chunks of one shape (the last may have the usage) and "[DONE]".
class ChunkWriter : public AnswerWriter {
 public:
  explicit ChunkWriter(const Told& told) : told_(told) {}

  std::string end(const std::vector<ChoiceAnswer>&, const Usage& usage) override {
    std::string out;
    if (told_.usage) {
      Json last = chunk(Json::array());
      if (told_.timings) last["timings"] = timings_json(usage);
      last["usage"] = usage_json(usage);
      out = data_line(last);
    }
    return out + "data: [DONE]\n\n";
  }
  std::string error(const Error& error) override { return data_line(error_body(error)) + "data: [DONE]\n\n"; }
  std::string progress(uint32_t choice, const ChoiceAnswer& answer, double seconds) override {
    Json out = chunk(Json::array({nothing_new(choice)}));
    out["prompt_progress"] =
        progress_json(usage_of(answer.timings), answer.timings.evaluated_tokens, seconds);
    return data_line(out);
  }

 protected:
  virtual const char* id_prefix() const = 0;
  virtual const char* chunk_object() const = 0;
  virtual Json nothing_new(uint32_t choice) const = 0;  // a choice of a chunk without text

  void begin_chunks(const AnswerHead& head, uint32_t choices) {
    head_ = head;
    told_tokens_.assign(choices, 0);
  }
  // The tokens that came since the choice's last chunk: each is told once, with the next text or the end.
  std::span<const ToldToken> news(uint32_t choice, const ChoiceAnswer& answer) {
    const size_t from = std::exchange(told_tokens_[choice], answer.tokens.size());
    return std::span(answer.tokens).subspan(from);
  }

  Json chunk(Json choices) const {
    Json out = {{"id", id_prefix() + head_.id},
                {"object", chunk_object()},
                {"created", head_.created},
                {"model", head_.model},
                {"choices", std::move(choices)}};
    if (told_.usage) out["usage"] = nullptr;  // the last chunk has it
    return out;
  }
  std::string choice_line(Json choice, const ChoiceAnswer& answer) const {
    Json out = chunk(Json::array({std::move(choice)}));
    if (told_.timings) out["timings"] = timings_json(usage_of(answer.timings));
    return data_line(out);
  }
  Json body(const AnswerHead& head, const char* object, Json choices, const Usage& usage) const {
    Json out = {{"id", id_prefix() + head.id},   {"object", object},
                {"created", head.created},       {"model", head.model},
                {"choices", std::move(choices)}, {"usage", usage_json(usage)}};
    if (told_.timings) out["timings"] = timings_json(usage);
    return out;
  }

  AnswerHead head_;

 private:
  const Told told_;
  std::vector<size_t> told_tokens_;  // of each choice, with their log-probabilities
};

const char* chat_finish(const ChoiceAnswer& answer) {
  const std::string_view reason = finish_reason(answer.stop);
  return answer.calls.empty() || reason != "stop" ? finish_reason(answer.stop) : "tool_calls";
}

class ChatWriter : public ChunkWriter {
 public:
  using ChunkWriter::ChunkWriter;

  std::string begin(const AnswerHead& head, uint32_t choices) override {
    begin_chunks(head, choices);
    std::string out;
    for (uint32_t i = 0; i < choices; ++i) {
      out += delta(i, {}, {}, {{"role", "assistant"}, {"content", ""}});
    }
    return out;
  }

  std::string event(uint32_t choice, const AnswerEvent& event, const ChoiceAnswer& answer) override {
    const std::span<const ToldToken> tokens = news(choice, answer);
    switch (event.kind) {
      case AnswerEvent::Kind::kText:
        return delta(choice, answer, tokens, {{"content", event.text}});
      case AnswerEvent::Kind::kReasoning:
        return delta(choice, answer, tokens, {{"reasoning_content", event.text}});
      case AnswerEvent::Kind::kCall:
        // Id and name come once: clients join what repeats.
        return call_delta(choice, answer, tokens,
                          {{"index", answer.calls.size() - 1},
                           {"id", answer.calls.back().id},
                           {"type", "function"},
                           {"function", {{"name", event.text}, {"arguments", ""}}}});
      case AnswerEvent::Kind::kArguments:
        return call_delta(choice, answer, tokens,
                          {{"index", answer.calls.size() - 1}, {"function", {{"arguments", event.text}}}});
    }
    return {};
  }

  std::string end_choice(uint32_t choice, const ChoiceAnswer& answer) override {
    return delta(choice, answer, news(choice, answer), Json::object(), chat_finish(answer));
  }

  Json whole(const AnswerHead& head, const std::vector<ChoiceAnswer>& answers, const Usage& usage) override {
    Json choices = Json::array();
    for (const ChoiceAnswer& answer : answers) {
      const bool only_calls = answer.text.empty() && !answer.calls.empty();
      Json message = {
          {"role", "assistant"}, {"content", only_calls ? Json() : Json(answer.text)}, {"refusal", nullptr}};
      if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
      for (const ToolCall& call : answer.calls) {
        message["tool_calls"].push_back({{"id", call.id},
                                         {"type", "function"},
                                         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
      }
      choices.push_back({{"index", choices.size()},
                         {"message", std::move(message)},
                         {"logprobs", logprobs_json(Endpoint::kChatCompletions, answer.tokens)},
                         {"finish_reason", chat_finish(answer)}});
    }
    return body(head, "chat.completion", std::move(choices), usage);
  }

 private:
  const char* id_prefix() const override { return "chatcmpl-"; }
  const char* chunk_object() const override { return "chat.completion.chunk"; }

  Json nothing_new(uint32_t choice) const override {
    return {{"index", choice}, {"delta", Json::object()}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
  }

  std::string delta(uint32_t choice, const ChoiceAnswer& answer, std::span<const ToldToken> tokens,
                    Json delta, const char* finish = nullptr) const {
    return choice_line({{"index", choice},
                        {"delta", std::move(delta)},
                        {"logprobs", logprobs_json(Endpoint::kChatCompletions, tokens)},
                        {"finish_reason", finish ? Json(finish) : Json()}},
                       answer);
  }
  std::string call_delta(uint32_t choice, const ChoiceAnswer& answer, std::span<const ToldToken> tokens,
                         Json call) const {
    Json calls = Json::array();
    calls.push_back(std::move(call));
    return delta(choice, answer, tokens, {{"tool_calls", std::move(calls)}});
  }
};

class CompletionWriter : public ChunkWriter {
 public:
  using ChunkWriter::ChunkWriter;

  std::string begin(const AnswerHead& head, uint32_t choices) override {
    begin_chunks(head, choices);
    return {};
  }
  std::string event(uint32_t choice, const AnswerEvent& event, const ChoiceAnswer& answer) override {
    return piece(choice, answer, event.text, nullptr);
  }
  std::string end_choice(uint32_t choice, const ChoiceAnswer& answer) override {
    return piece(choice, answer, "", finish_reason(answer.stop));
  }
  Json whole(const AnswerHead& head, const std::vector<ChoiceAnswer>& answers, const Usage& usage) override {
    Json choices = Json::array();
    for (const ChoiceAnswer& answer : answers) {
      choices.push_back({{"index", choices.size()},
                         {"text", answer.text},
                         {"logprobs", logprobs_json(Endpoint::kCompletions, answer.tokens)},
                         {"finish_reason", finish_reason(answer.stop)}});
    }
    return body(head, "text_completion", std::move(choices), usage);
  }

 private:
  const char* id_prefix() const override { return "cmpl-"; }
  const char* chunk_object() const override { return "text_completion"; }

  Json nothing_new(uint32_t choice) const override {
    return {{"index", choice}, {"text", ""}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
  }

  std::string piece(uint32_t choice, const ChoiceAnswer& answer, const std::string& text,
                    const char* finish) {
    return choice_line({{"index", choice},
                        {"text", text},
                        {"logprobs", logprobs_json(Endpoint::kCompletions, news(choice, answer))},
                        {"finish_reason", finish ? Json(finish) : Json()}},
                       answer);
  }
};

}  // namespace

void ChoiceAnswer::add(const AnswerEvent& event) {
  switch (event.kind) {
    case AnswerEvent::Kind::kText:
      text += event.text;
      break;
    case AnswerEvent::Kind::kReasoning:
      reasoning += event.text;
      break;
    case AnswerEvent::Kind::kCall:
      calls.push_back({.id = new_call_id(), .name = event.text, .arguments = {}});
      break;
    case AnswerEvent::Kind::kArguments:
      calls.back().arguments += event.text;
      break;
  }
}

std::unique_ptr<AnswerWriter> make_chat_writer(const Told& told) {
  return std::make_unique<ChatWriter>(told);
}
std::unique_ptr<AnswerWriter> make_completion_writer(const Told& told) {
  return std::make_unique<CompletionWriter>(told);
}

Json error_body(const std::string& message, const char* type, const char* code) {
  const std::string field = field_of(message);
  return {{"error",
           {{"message", message},
            {"type", type},
            {"param", field.empty() ? Json() : Json(field)},
            {"code", code ? Json(code) : Json()}}}};
}

Json error_body(const Error& error) {
  const int status = error_status(error);
  return error_body(error.sentence(), status < 500 ? "invalid_request_error" : "server_error");
}

int error_status(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::kInvalidInput:
    case ErrorKind::kUnsupported:
      return 400;
    case ErrorKind::kCancelled:
      return 503;
    default:
      return 500;
  }
}

std::string new_call_id() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  constexpr size_t kLength = 9;
  thread_local std::mt19937_64 random{std::random_device()()};
  std::uniform_int_distribution<size_t> letter(0, kLetters.size() - 1);
  std::string out;
  for (size_t i = 0; i < kLength; ++i) out += kLetters[letter(random)];
  return out;
}

std::string data_line(const Json& value) { return "data: " + to_text(value) + "\n\n"; }

}  // namespace doppler::openai
