// Chat templates: the Jinja program a model ships that turns a conversation into its prompt text.
// A ChatTemplate is parsed once and rendered any number of times, also from several threads at once.
// It behaves as jinja2 does in the environment that Hugging Face transformers sets up (immutable sandbox,
// trim_blocks, lstrip_blocks, loop controls, its tojson, raise_exception, strftime_now), for the subset of
// the language that README.md names. Templates are hostile input: limits.h bounds what they can cost.
// Read next: render_input.h (what a template sees).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace doppler::tmpl {

struct RenderInput;  // render_input.h

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

  // True if the template reads the variable at all ("tools", "enable_thinking").
  bool mentions(std::string_view variable) const;

 private:
  explicit ChatTemplate(std::shared_ptr<const struct Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const struct Program> program_;
};

}  // namespace doppler::tmpl
