// The arguments of a call, and how a built-in binds them to its parameter names as Python does.
#pragma once

#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/template/machine.h"

namespace doppler::tmpl {

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

inline constexpr size_t kMaxParameters = 6;

// One entry a parameter; null where the call gave none. Points into the Arguments.
class Bound {
 public:
  const Value*& operator[](size_t i) { return values_[i]; }
  const Value* operator[](size_t i) const { return values_[i]; }

 private:
  std::array<const Value*, kMaxParameters> values_{};
};

// `what` names the callee in errors ("filter join"); the first `required` parameters must be given.
Result<Bound> bind(Machine& machine, const char* what, const Arguments& arguments,
                   std::initializer_list<std::string_view> parameters, size_t required = 0);

// The value, or an error that names the callee. A null pointer gives `otherwise`.
Result<int64_t> integer_or(Machine& machine, const char* what, const Value* value, int64_t otherwise);
Result<std::string_view> text_or(Machine& machine, const char* what, const Value* value,
                                 std::string_view otherwise);
inline bool truthy_or(const Value* value, bool otherwise) { return value ? value->truthy() : otherwise; }

}  // namespace doppler::tmpl
