// The fields of a chat that its template and its answer's parser see: messages, tools, variables of the template.
// Shared by the server and the WebAssembly build. Read next: formats/chat_prompt.h.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "openai/image_parts.h"

namespace doppler::openai {

enum class ToolChoice : uint8_t { kAuto, kNone, kRequired, kNamed };

struct ChatFields {
  Json messages = Json::array();  // as templates read them
  std::vector<Picture> images;    // of the messages, in order
  Json tools;                     // as templates read them; null: the model may call no tool
  Json documents;                 // as templates read them; null: none
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::string tool_name;   // of kNamed
  bool one_call = false;   // "parallel_tool_calls": false
  bool continues = false;  // the answer goes on from the last message, an assistant's, and does not repeat it
  bool opens_answer =
      true;  // the prompt ends with the template's opening of an answer; false if it continues
  Json template_arguments = Json::object();  // further variables of the template
};
// Errors: kInvalidInput or kUnsupported, naming the field.
Result<ChatFields> read_chat_fields(const Json& body);

// A list of messages of OpenAI's API as templates read them. `images`: gets their pictures. Errors as above.
Result<Json> read_conversation(const Json& messages, std::vector<Picture>& images);

}  // namespace doppler::openai
