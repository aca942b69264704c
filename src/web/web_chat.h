// A chat's way to tokens, and its answer's way to text, reasoning and calls of tools: the server's (openai/formats) as
// JSON.
#pragma once

#include <string>

#include "base/json.h"
#include "engine/loaded_model.h"
#include "openai/formats/output_parser.h"
#include "web/web_pictures.h"

namespace doppler::web {

// body: {"messages", "tools", "tool_choice", "response_format", "chat_template_kwargs", "reasoning_effort"} in OpenAI's
// shape. Gives {"tokens", "reading"} and, if the body asks for a grammar, {"grammar"} as read_grammar() does. The host
// passes "reading" on to the generation without reading it. `has_grammars`: the host can honour a grammar; otherwise a
// body that asks for one is an error. Calls that must come are written freely after their opening. A picture's part is
// OpenAI's "image_url" whose data URL holds only the picture's number (web_pictures.h).
Result<Json> begin_chat(const engine::TextModel& text, const Json& body, bool has_grammars,
                        WebPictures& pictures);

// {"kind": "json-schema", "regex", "grammar", or "none" where the body asks for none, "text", "source"}.
Result<Json> read_grammar(const Json& body, bool has_grammars);

// Takes an answer's text as it comes. Each piece gives a list of ["text" | "reasoning" | "call" | "arguments", text].
class ChatReader {
 public:
  // reading: of begin_chat() with the same model.
  static Result<ChatReader> create(const engine::TextModel& text, const Json& reading);

  bool shows_special() const { return shows_special_; }  // the answer's text must show them too
  std::string push(std::string_view text);
  std::string finish();

 private:
  openai::OutputParser parser_;
  std::string forced_;  // the answer's beginning, which the prompt has
  bool shows_special_ = false;
};

}  // namespace doppler::web
