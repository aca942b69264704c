// Binding of call arguments. See arguments.h.
#include "tokenizer/template/arguments.h"

#include <algorithm>

namespace doppler::tmpl {

Result<Bound> bind(Machine& machine, const char* what, const Arguments& arguments,
                   std::initializer_list<std::string_view> parameters, size_t required) {
  Bound bound;
  if (arguments.positional.size() > parameters.size()) {
    return machine.error("%s takes at most %zu arguments, not %zu.", what, parameters.size(),
                         arguments.positional.size());
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) bound[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto it = std::find(parameters.begin(), parameters.end(), name);
    if (it == parameters.end())
      return machine.error("%s has no argument '%s'.", what, printable(name).c_str());
    const auto index = static_cast<size_t>(it - parameters.begin());
    if (bound[index]) return machine.error("%s got argument '%s' twice.", what, name.c_str());
    bound[index] = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!bound[i]) {
      return machine.error("%s needs argument '%s'.", what, std::string(*(parameters.begin() + i)).c_str());
    }
  }
  return bound;
}

Result<int64_t> integer_or(Machine& machine, const char* what, const Value* value, int64_t otherwise) {
  if (!value) return otherwise;
  if (value->is_integral()) return value->as_int();
  if (value->is(Kind::kUndefined)) return machine.undefined_error(*value);
  return machine.error("%s needs an integer, not %s.", what, value->type_name());
}

Result<std::string_view> text_or(Machine& machine, const char* what, const Value* value,
                                 std::string_view otherwise) {
  if (!value) return otherwise;
  if (value->is(Kind::kText)) return value->as_text();
  if (value->is(Kind::kUndefined)) return machine.undefined_error(*value);
  return machine.error("%s needs a str, not %s.", what, value->type_name());
}

}  // namespace doppler::tmpl
