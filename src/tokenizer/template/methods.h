// Methods of values ("text.split()", "message.items()"): the reading ones of Python's str, dict and list.
// Those that would change a list or dict are refused, as jinja2's immutable sandbox does.
#pragma once

#include <span>

#include "tokenizer/template/arguments.h"

namespace doppler::tmpl {

struct MethodRow {
  Kind kind;
  std::string_view name;
  // Null: exists in Python, refused here because it would change the value.
  Result<Value> (*method)(Machine&, const Value& self, const Arguments&);
};
std::span<const MethodRow> text_methods();

// Fails for a method that exists in Python but may not be used in a template.
Result<bool> has_method(Machine& machine, const Value& object, std::string_view name);
Result<Value> call_method(Machine& machine, const Value& object, std::string_view name,
                          const Arguments& arguments);

// str.format().
Result<Value> format_method(Machine& machine, const Value& self, const Arguments& arguments);

// The text with every `old` replaced, at most `count` times when that is not negative.
Result<Value> replace_text(Machine& machine, std::string_view text, std::string_view old,
                           std::string_view with, int64_t count);

}  // namespace doppler::tmpl
