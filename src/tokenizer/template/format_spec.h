// Values by a format specification, as str.format() takes them.
#pragma once

#include <string>

#include "tokenizer/template/machine.h"

namespace doppler::tmpl {

// Python's format(value, spec). Errors: a specification that cannot be read, or is not for the value's type.
Result<std::string> format_value(Machine& machine, const Value& value, std::string_view spec);

}  // namespace doppler::tmpl
