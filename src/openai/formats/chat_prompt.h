// Turns a chat into the model's prompt and into the rules to read its answer: the marks of tools and reasoning, the
// forced opening, the grammar.
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
  // Tells the model of tools if the template does not know tools, or writes calls in an unknown way:
  // render_told_tools() of told_tools.h. Null: such tools are refused.
  Result<std::string> (*tell_tools)(ChatFields chat, const Render& render) = nullptr;
};

// The prompt of a chat, with what the answer is read by.
struct ChatPrompt {
  std::string text;
  OutputParser::Setup parser;
  bool shows_special = false;
  bool tells_tools = false;  // TemplateUse::tell_tools made it
  std::string forced;        // the end of the text: it is part of the answer
  Grammar grammar;           // of the text that follows
};
// Errors: the model has no template, the template refuses the conversation or knows no tools.
Result<ChatPrompt> chat_prompt(const ChatFields& chat, const Grammar& grammar, const TemplateUse& use);

}  // namespace doppler::openai
