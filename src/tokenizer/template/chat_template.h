// Chat templates: the Jinja program a model ships that turns a conversation into its prompt text.
// A ChatTemplate is parsed once and rendered any number of times, also from several threads at once.
// It behaves as jinja2 does in the environment that Hugging Face transformers sets up (immutable sandbox,
// trim_blocks, lstrip_blocks, loop controls, its tojson, raise_exception, strftime_now), for the subset of
// the language that README.md names. Templates are hostile input: limits.h bounds what they can cost.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace doppler::tmpl {

// A date for strftime_now, as a calendar shows it (month and day from 1).
struct DateTime {
  int year = 2024;
  int month = 1;
  int day = 1;
  int hour = 0;
  int minute = 0;
  int second = 0;
};

DateTime local_now();

// What the template sees. Every field becomes the variable of its name.
struct RenderInput {
  Json messages = Json::array();
  Json tools;      // null: the template sees none
  Json documents;  // likewise
  bool add_generation_prompt = true;
  std::string bos_token;  // empty text where the model has none
  std::string eos_token;
  Json extra = Json::object();  // further variables by name ("enable_thinking"); they override the above
  std::optional<DateTime> now;  // for strftime_now; default: the local time
};

struct ChatMessage {
  std::string role;
  std::string content;
};

class ChatTemplate {
 public:
  // An error names the line of the template.
  static Result<ChatTemplate> parse(std::string_view source);

  // The prompt text. Fails with one sentence when the template refuses the conversation (raise_exception),
  // uses something undefined, or passes a bound.
  Result<std::string> render(const RenderInput& input) const;

  // The common case: plain text messages, prompting for the next answer.
  Result<std::string> render(std::span<const ChatMessage> messages, std::string_view bos_token,
                             std::string_view eos_token, bool add_generation_prompt = true) const;

  // Whether the template reads the variable at all ("tools", "enable_thinking").
  bool mentions(std::string_view variable) const;

 private:
  explicit ChatTemplate(std::shared_ptr<const struct Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const struct Program> program_;
};

}  // namespace doppler::tmpl
