// From a chat to the model's prompt and to what its answer is read by: which tools' and reasoning's marks, which
// opening is forced, which grammar holds.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "openai/chat_fields.h"
#include "openai/formats/formats.h"

namespace doppler::openai {

// The model's chat template.
struct TemplateUse {
  using Render = std::function<Result<std::string>(const ChatFields&)>;
  std::string_view source;
  bool knows_tools = true;
  Render render;
  // For tools that the template does not know, or whose calls it writes in a way that is not known: render_told_tools()
  // of told_tools.h. Null: they are refused.
  Result<std::string> (*tell_tools)(ChatFields chat, const Render& render) = nullptr;
};

// The prompt of a chat, with what the answer is read by.
struct ChatPrompt {
  std::string text;
  OutputParser::Setup parser;
  bool shows_special = false;
  bool tells_tools = false;  // TemplateUse::tell_tools made it
  std::string forced;        // the end of the text: it is part of the answer
  Grammar grammar;           // of what follows
};
// Errors: the model has no template, the template refuses the conversation or knows no tools.
Result<ChatPrompt> chat_prompt(const ChatFields& chat, const Grammar& grammar, const TemplateUse& use);

}  // namespace doppler::openai
