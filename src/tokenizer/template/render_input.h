// The input of a chat template. It has its own header because it holds JSON documents, which most users of a
// ChatTemplate never touch. Read next: chat_template.h.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "tokenizer/template/date_time.h"

namespace doppler::tmpl {

// The variables of a template: every field becomes the variable of its name.
struct RenderInput {
  Json messages = Json::array();
  Json tools;      // null: the template sees none
  Json documents;  // null: the template sees none
  bool add_generation_prompt = true;
  std::string bos_token;  // empty text where the model has none
  std::string eos_token;
  Json extra = Json::object();  // further variables by name ("enable_thinking"); they override the above
  std::optional<DateTime> now;  // for strftime_now; default: the local time
};

}  // namespace doppler::tmpl
