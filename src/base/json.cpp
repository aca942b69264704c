// Parsing with a depth limit, so that a hostile file cannot exhaust the stack, and typed access with sentences for
// what is missing or of another type. The contract is json.h.
#include "base/json.h"

#include <cmath>

#include "base/text.h"

namespace doppler {
namespace {

// Depth is checked before the parse: the parser itself recurses only when the value is destroyed.
bool deeper_than(std::string_view text, int max_depth) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > max_depth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

Unexpected wrong_type(std::string_view key, const char* wanted, const Json& value) {
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be %s, but it is %s.", printable(key).c_str(),
              wanted, printable(to_text(value)).c_str());
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what, int max_depth) {
  const std::string name(what);
  if (deeper_than(text, max_depth)) {
    return fail(ErrorKind::kInvalidInput, "%s is nested deeper than %d levels.", name.c_str(), max_depth);
  }
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return fail(ErrorKind::kInvalidInput, "%s is not valid JSON.", name.c_str());
  return value;
}

std::string without_infinities(std::string_view text) {
  constexpr std::string_view kWord = "Infinity";
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!in_string && text.substr(i, kWord.size()) == kWord) {
      out += "1e308";
      i += kWord.size() - 1;
      continue;
    }
    out += text[i];
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\' && i + 1 < text.size()) out += text[++i];
  }
  return out;
}

const Json* find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(key));
  return it == object.end() ? nullptr : &*it;
}

Result<std::optional<std::string>> get_string(const Json& object, std::string_view key) {
  const Json* value = find(object, key);
  if (!value || value->is_null()) return std::optional<std::string>();
  if (!value->is_string()) return wrong_type(key, "a string", *value);
  return std::optional<std::string>(value->get_ref<const std::string&>());
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

std::string to_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace doppler
