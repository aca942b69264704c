// The public face: parse once, render often. See chat_template.h.
#include "tokenizer/template/chat_template.h"

#include <algorithm>

#include "base/json.h"
#include "tokenizer/template/interpreter.h"
#include "tokenizer/template/lexer.h"
#include "tokenizer/template/parser.h"
#include "tokenizer/template/render_input.h"

namespace doppler::tmpl {

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  DP_TRY(std::vector<Token> tokens, tokenize(source));
  DP_TRY(Program program, Parser(std::move(tokens)).run());
  return ChatTemplate(std::make_shared<const Program>(std::move(program)));
}

Result<std::string> ChatTemplate::render(const RenderInput& input) const {
  return Interpreter(*program_, input).run();
}

Result<std::string> ChatTemplate::render(std::span<const ChatMessage> messages, std::string_view bos_token,
                                         std::string_view eos_token, bool add_generation_prompt) const {
  RenderInput input;
  for (const ChatMessage& message : messages) {
    Json json = Json::object();
    json["role"] = message.role;
    json["content"] = message.content;
    input.messages.push_back(std::move(json));
  }
  input.bos_token = bos_token;
  input.eos_token = eos_token;
  input.add_generation_prompt = add_generation_prompt;
  return render(input);
}

bool ChatTemplate::mentions(std::string_view variable) const {
  return std::find(program_->names.begin(), program_->names.end(), variable) != program_->names.end();
}

}  // namespace doppler::tmpl
