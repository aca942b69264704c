// An answer on its way to a client: events of a generation in, bytes of an API's stream or its whole body out. One
// class an API; OpenAI's two old ones are here, the others in src/server/apis. Read next: formats/output_parser.h (the
// events).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "doppler/doppler.h"
#include "openai/formats/output_parser.h"
#include "openai/served_request.h"
#include "openai/token_probs.h"
#include "openai/usage.h"

namespace doppler::openai {

struct ToolCall {
  std::string id, name, arguments;  // arguments: JSON text
};

// The result of a choice.
struct ChoiceAnswer {
  std::string text, reasoning;
  std::vector<ToolCall> calls;
  StopReason stop = StopReason::kEndOfText;
  std::vector<ToldToken> tokens;  // so far, if log-probabilities were requested
  Timings timings;                // so far

  void add(const AnswerEvent& event);
};

// The facts that are known before the first token.
struct AnswerHead {
  std::string id;  // unique among answers, without the API's prefix
  std::string model;
  int64_t created = 0;  // seconds since 1970
  uint64_t prompt_tokens = 0;
};

class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  // ---- Of a stream: each gives the bytes to send, in this order.
  virtual std::string content_type() const { return "text/event-stream"; }
  virtual std::string begin(const AnswerHead& head, uint32_t choices) = 0;
  // More of the choice's prompt is evaluated: `answer` has its timings.
  virtual std::string progress(uint32_t, const ChoiceAnswer&, double /*seconds since its evaluation began*/) {
    return {};
  }
  // `answer` has all that came of the choice, this event too.
  virtual std::string event(uint32_t choice, const AnswerEvent& event, const ChoiceAnswer& answer) = 0;
  virtual std::string end_choice(uint32_t choice, const ChoiceAnswer& answer) = 0;
  virtual std::string end(const std::vector<ChoiceAnswer>& choices, const Usage& usage) = 0;
  // Instead of an end, once begin() was sent.
  virtual std::string error(const Error& error) = 0;

  // ---- The same at once.
  virtual Json whole(const AnswerHead& head, const std::vector<ChoiceAnswer>& choices,
                     const Usage& usage) = 0;

  // The answer is complete, or its client left: an API that keeps answers keeps it now.
  virtual void keep(const AnswerHead&, const std::vector<ChoiceAnswer>&, const Usage&) {}
};

std::unique_ptr<AnswerWriter> make_chat_writer(const Told& told);
std::unique_ptr<AnswerWriter> make_completion_writer(const Told& told);

// {"error": {"message", "type", "param", "code"}}
Json error_body(const Error& error);
Json error_body(const std::string& message, const char* type, const char* code = nullptr);
// HTTP's status for such an error: 400, 500, 503.
int error_status(const Error& error);

// A new id of a tool call. Nine letters and digits: some templates take no others.
std::string new_call_id();
// "data: {...}\n\n"
std::string data_line(const Json& value);

}  // namespace doppler::openai
