// Typed access to members, with sentences for what is of another type. The contract is json.h.
#include <cmath>

#include "base/json.h"
#include "base/text.h"

namespace doppler {
namespace {

Unexpected wrong_type(std::string_view key, const char* wanted, const Json& value) {
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be %s, but it is %s.", printable(key).c_str(),
              wanted, printable(to_text(value)).c_str());
}

}  // namespace

Result<std::optional<std::string>> get_string(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (!value || value->is_null()) return std::optional<std::string>();
  if (!value->is_string()) return wrong_type(key, "a string", *value);
  return std::optional<std::string>(value->text());
}

Result<std::optional<double>> get_number(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (!value || value->is_null()) return std::optional<double>();
  if (!value->is_number()) return wrong_type(key, "a number", *value);
  return std::optional<double>(value->get<double>());
}

Result<std::optional<int64_t>> get_integer(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (!value || value->is_null()) return std::optional<int64_t>();
  if (value->is_number_float()) {  // "8.0" is written by some exporters
    const double number = value->get<double>();
    if (std::abs(number) < 9e15 && number == std::floor(number)) {
      return std::optional<int64_t>(static_cast<int64_t>(number));
    }
    return wrong_type(key, "a whole number", *value);
  }
  if (!value->is_number()) return wrong_type(key, "a whole number", *value);
  if (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    return wrong_type(key, "a whole number below 2^63", *value);
  }
  return std::optional<int64_t>(value->get<int64_t>());
}

Result<std::optional<bool>> get_bool(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (!value || value->is_null()) return std::optional<bool>();
  if (!value->is_boolean()) return wrong_type(key, "true or false", *value);
  return std::optional<bool>(value->get<bool>());
}

}  // namespace doppler
