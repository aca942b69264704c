// JSON through nlohmann/json 3.11 (Debian nlohmann-json3-dev; header-only, so WebAssembly has it too).
// The core is built without exceptions: parse with parse_json(), read with the get_* functions below, and never
// call Json::at, Json::get<T> or operator[] on a type you have not tested: those abort.
#pragma once

#define JSON_NOEXCEPTION 1
#define JSON_USE_IMPLICIT_CONVERSIONS 0
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "base/result.h"

namespace doppler {

// Refuses text that is not JSON, deeper than max_depth (a hostile file must not exhaust the stack) or not UTF-8.
// `what` names the document in the error: "config.json".
Result<Json> parse_json(std::string_view text, std::string_view what, int max_depth = 64);

// Python's json writes infinite numbers as the bare word Infinity, which JSON does not have: the text with 1e308 in their
// place. Words within strings stay.
std::string without_infinities(std::string_view text);

// The member, or null if `object` is no object or lacks it.
const Json* find(const Json& object, std::string_view key);

// Empty when absent or null; an error when present with another type.
Result<std::optional<std::string>> get_string(const Json& object, std::string_view key);
Result<std::optional<double>> get_number(const Json& object, std::string_view key);
Result<std::optional<int64_t>> get_integer(const Json& object, std::string_view key);
Result<std::optional<bool>> get_bool(const Json& object, std::string_view key);

// Compact text; bytes that are not UTF-8 are replaced, never thrown over.
std::string to_text(const Json& value, int indent = -1);

}  // namespace doppler
