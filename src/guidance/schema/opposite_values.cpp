#include "guidance/schema/opposite_values.h"

#include <algorithm>
#include <set>

#include "guidance/schema/opposite.h"

namespace doppler::guidance {

Json with(const char* type, const char* key, Json value) {
  Json out = Json::object();
  out["type"] = type;
  out[key] = std::move(value);
  return out;
}

Json list_of(const char* key, Json items) {
  Json out = Json::object();
  out[key] = std::move(items);
  return out;
}

bool add_types(const Json& value, uint8_t types, Json& out) {
  uint8_t own = 0;
  if (value.is_string()) own = type_bits(value.get<std::string>());
  if (value.is_array()) {
    for (const Json& name : value) own |= name.is_string() ? type_bits(name.get<std::string>()) : uint8_t{0};
  }
  auto others = static_cast<uint8_t>(kAllBits & ~own);
  // No schema allows numbers with a fraction only.
  if ((others & kNumberBits) == kFractionBit) {
    if (types & kFractionBit) return false;
    others = static_cast<uint8_t>(others & ~kFractionBit);
  }
  if (others != 0) out.push_back(schema_of_types(others));
  return true;
}

bool add_values(const Json& values, uint8_t types, Json& out) {
  if (!values.is_array()) return false;
  uint8_t whole = kAllBits;
  std::set<std::string> texts;
  std::vector<double> numbers;
  bool has_true = false, has_false = false;
  for (const Json& value : values) {
    const uint8_t type = type_bits_of(value);
    if ((type & (kArrayBit | kObjectBit) & types) != 0) return false;
    const uint8_t taken = (type & kNumberBits) != 0 ? uint8_t{kNumberBits} : type;
    whole = static_cast<uint8_t>(whole & ~taken);
    if (value.is_string()) texts.insert(value.get<std::string>());
    if (value.is_number()) numbers.push_back(value.get<double>());
    has_true = has_true || value == Json(true);
    has_false = has_false || value == Json(false);
  }
  if (whole != 0) out.push_back(schema_of_types(whole));
  if (has_true != has_false) {
    Json left = Json::array();
    left.push_back(has_false);
    out.push_back(list_of("enum", std::move(left)));
  }
  if (!texts.empty()) out.push_back(with("string", "pattern", pattern_of_others(texts)));
  std::ranges::sort(numbers);
  for (size_t i = 0; i <= numbers.size() && !numbers.empty(); ++i) {
    Json between = Json::object();
    between["type"] = "number";
    if (i > 0) between["exclusiveMinimum"] = numbers[i - 1];
    if (i < numbers.size()) between["exclusiveMaximum"] = numbers[i];
    if (i == 0 || i == numbers.size() || numbers[i - 1] < numbers[i]) out.push_back(std::move(between));
  }
  return true;
}

// False: the key is no bound.
bool add_bound(const Json& schema, const std::string& key, const Json& value, Json& out) {
  const bool is_least = key == "minimum" || key == "exclusiveMinimum";
  if (!is_least && key != "maximum" && key != "exclusiveMaximum") return false;
  if (!value.is_number()) return true;  // of old, a flag beside "minimum"
  const Json* flag = find(schema, is_least ? "exclusiveMinimum" : "exclusiveMaximum");
  const bool is_exclusive = key.starts_with("exclusive") || (flag && *flag == Json(true));
  const char* opposite = is_least ? (is_exclusive ? "maximum" : "exclusiveMaximum")
                                  : (is_exclusive ? "minimum" : "exclusiveMinimum");
  out.push_back(with("number", opposite, value));
  return true;
}

bool add_count(const char* type, const char* key, const Json& value, int step, Json& out) {
  if (!value.is_number()) return false;
  const auto count = static_cast<int64_t>(value.get<double>()) + step;
  if (count >= 0) out.push_back(with(type, key, count));
  return true;
}

bool add_pattern(const Json& value, Json& out) {
  const auto texts = value.is_string() ? texts_of_pattern(value.get<std::string>()) : std::nullopt;
  if (texts) out.push_back(with("string", "pattern", pattern_of_others(*texts)));
  return texts.has_value();
}

}  // namespace doppler::guidance
