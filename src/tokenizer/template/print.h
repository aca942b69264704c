// Values as text: Python's str() and repr(), and the tojson of Hugging Face transformers.
#pragma once

#include <string>

#include "tokenizer/template/machine.h"

namespace doppler::tmpl {

// Appends the output of {{ value }} to `out`, and counts it against the budget.
Result<void> append_text(Machine& machine, std::string& out, const Value& value);
Result<std::string> to_string(Machine& machine, const Value& value);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool pretty = false;
  std::string indent;          // of one level, when pretty
  std::string item_separator;  // ", " or "," as json.dumps chooses
  std::string key_separator = ": ";
};
Result<std::string> to_json(Machine& machine, const Value& value, const JsonStyle& style);

}  // namespace doppler::tmpl
