// From a chat to the model's prompt and to the rules by which its answer is read: the marks of tools and reasoning, the
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
  std::string_view source;
  bool knows_tools = true;
  std::function<Result<std::string>(const ChatFields&)> render;
};

// The prompt of a chat, with what the answer is read by.
struct ChatPrompt {
  std::string text;
  OutputParser::Setup parser;
  bool shows_special = false;
  std::string forced;  // the end of the text: it is part of the answer
  Grammar grammar;     // of what follows
};
// Errors: the model has no template, the template refuses the conversation or knows no tools.
Result<ChatPrompt> chat_prompt(const ChatFields& chat, const Grammar& grammar, const TemplateUse& use);

}  // namespace doppler::openai
