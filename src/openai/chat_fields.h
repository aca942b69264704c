// The fields of a chat that its template and its answer's parser see: messages, tools, variables of the template.
// Shared by the server and the WebAssembly build. Read next: formats/chat_prompt.h.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace doppler::openai {

enum class ToolChoice : uint8_t { kAuto, kNone, kRequired, kNamed };

struct ChatFields {
  Json messages = Json::array();  // as templates read them
  Json tools;                     // null: none, or none may be called; else as templates read them
  Json documents;                 // null: none; else as templates read them
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::string tool_name;  // of kNamed
  bool one_call = false;  // "parallel_tool_calls": false
  bool continues =
      false;  // the last message, an assistant's, is the answer's beginning, which is not told again
  bool opens_answer =
      true;  // the prompt ends with the template's opening of an answer; not where it continues
  Json template_arguments = Json::object();  // further variables of the template
};
// Errors: kInvalidInput or kUnsupported, naming the field.
Result<ChatFields> read_chat_fields(const Json& body);

// A list of messages of OpenAI's API as templates read them. Errors as above.
Result<Json> read_conversation(const Json& messages);

}  // namespace doppler::openai
