#include "guidance/schema/alternatives.h"

#include <algorithm>

#include "guidance/schema/formats.h"
#include "guidance/schema/overlap.h"

namespace doppler::guidance {
namespace {

constexpr size_t kMostOrders = 400;  // of the items of an array that differ
constexpr size_t kMostPlaces = 8;    // of an item in an array

const Json& anything() {
  static const Json schema(true);
  return schema;
}

Json schema_with(const char* key, Json value) {
  Json out = Json::object();
  out[key] = std::move(value);
  return out;
}

// Adds all types except `bits`: the keyword says nothing about those. Adds none if the given schemas allow none.
void add_other_types(const Document& document, uint8_t bits, const Schemas& given, Json& options) {
  const uint8_t allowed = document.types(given);
  auto others = static_cast<uint8_t>(kAllBits & ~bits);
  if ((allowed & others) != 0) options.push_back(schema_of_types(others));
}

// The least of a number that any of the parts names.
size_t least_of(const Schemas& parts, const char* key, size_t otherwise) {
  double out = static_cast<double>(otherwise), own = 0;
  for (const Json* part : parts) {
    if (read_number(*part, key, own)) out = std::min(out, std::max(own, 0.0));
  }
  return static_cast<size_t>(out);
}
size_t most_of(const Schemas& parts, const char* key, size_t otherwise) {
  double out = static_cast<double>(otherwise), own = 0;
  for (const Json* part : parts) {
    if (read_number(*part, key, own)) out = std::max(out, std::min(own, 1e6));
  }
  return static_cast<size_t>(out);
}

// All values that an item may have, if these are few.
std::optional<std::vector<Json>> values_of_items(const Document& document, const Schemas& arrays) {
  Schemas items;
  for (const Json* array : arrays) {
    const Json* own = find(*array, "items");
    if (array->contains("prefixItems") || (own && own->is_array())) return {};
    if (own) items.push_back(own);
  }
  Schemas parts;
  std::vector<Json> out;
  if (!document.flatten(items, parts)) return out;
  for (const Json* part : parts) {
    const Json* values = find(*part, "enum");
    const Json* one = find(*part, "const");
    if (one) return std::vector<Json>{*one};
    if (!values || !values->is_array()) continue;
    for (const Json& value : *values) {
      if (std::ranges::find(out, value) == out.end()) out.push_back(value);
    }
    return out;
  }
  const uint8_t types = document.types(parts);
  if ((types & ~(kNullBit | kBooleanBit)) != 0) return {};
  if (types & kNullBit) out.emplace_back();
  if (types & kBooleanBit) out.insert(out.end(), {Json(true), Json(false)});
  return out;
}

// Adds every list of `count` different values.
void add_orders(const std::vector<Json>& values, size_t count, Json& items, Json& options) {
  if (items.size() == count) {
    Json array = schema_of_types(kArrayBit);
    array["minItems"] = count;
    array["maxItems"] = count;
    if (count != 0) array["items"] = items;
    options.push_back(std::move(array));
    return;
  }
  for (const Json& value : values) {
    Json one = Json::array();
    one.push_back(value);
    Json item = schema_with("enum", std::move(one));
    if (std::find(items.begin(), items.end(), item) != items.end()) continue;
    Json more = items;
    more.push_back(std::move(item));
    add_orders(values, count, more, options);
  }
}

}  // namespace

Json union_of(Json options) {
  if (options.empty()) return Json(false);
  if (options.size() == 1) return Json(options[0]);
  return schema_with("anyOf", std::move(options));
}

Json both_of(Json a, Json b) {
  Json all = Json::array();
  all.push_back(std::move(a));
  all.push_back(std::move(b));
  return schema_with("allOf", std::move(all));
}

Said say_condition(const Document& document, const Json& schema, const Schemas& given, NoOpposite& why) {
  const Json* then = find(schema, "then");
  const Json* otherwise = find(schema, "else");
  const Json& condition = *find(schema, "if");
  if (!then && !otherwise) return Json(true);
  if (!may_overlap(document, {&condition}, given)) return otherwise ? *otherwise : Json(true);
  Json options = Json::array();
  if (!then) {
    options.push_back(condition);
    options.push_back(*otherwise);
    return union_of(std::move(options));
  }
  auto other = opposite(document, condition, given, why);
  if (!other) return {};
  options.push_back(both_of(condition, *then));
  if (!(*other == Json(false)))
    options.push_back(otherwise ? both_of(std::move(*other), *otherwise) : *other);
  return union_of(std::move(options));
}

Said say_one_of(const Document& document, const Json& branches, const Schemas& given, NoOpposite& why) {
  Json options = Json::array();
  for (size_t i = 0; i < branches.size(); ++i) {
    if (!may_overlap(document, {&branches[i]}, given)) continue;
    Schemas with_one = given;
    with_one.push_back(&branches[i]);
    Json option = branches[i];
    for (size_t j = 0; j < branches.size(); ++j) {
      if (i == j || !may_overlap(document, with_one, {&branches[j]})) continue;
      auto other = opposite(document, branches[j], with_one, why);
      if (!other) return {};
      option = *other == Json(false) ? Json(false) : both_of(std::move(option), std::move(*other));
      if (option == Json(false)) break;
    }
    if (!(option == Json(false))) options.push_back(std::move(option));
  }
  return union_of(std::move(options));
}

Said say_dependencies(const Document& document, const Json& dependencies, const Schemas& given) {
  Json all = Json::array();
  for (const auto& [name, wanted] : dependencies.items()) {
    Json then = wanted;
    if (wanted.is_array()) {
      if (wanted.empty()) continue;
      then = schema_with("required", wanted);
    }
    if (then == Json(true)) continue;
    // The keyword says nothing about a value that is no object.
    if (is_required(document, given, name) && document.types(given) == kObjectBit) {
      all.push_back(std::move(then));
      continue;
    }
    Json properties = Json::object();
    properties[name] = false;
    Json options = Json::array();
    options.push_back(schema_with("properties", std::move(properties)));
    Json there = Json::array();
    there.push_back(name);
    if (!(then == Json(false)))
      options.push_back(both_of(schema_with("required", std::move(there)), std::move(then)));
    all.push_back(union_of(std::move(options)));
  }
  return all.empty() ? Json(true) : schema_with("allOf", std::move(all));
}

Said say_unique_items(const Document& document, const Json& schema, const Schemas& given) {
  if (*find(schema, "uniqueItems") == Json(false)) return Json(true);
  if ((document.types(given) & kArrayBit) == 0) return Json(true);
  Schemas parts;
  document.flatten(given, parts);
  if (least_of(parts, "maxItems", 2) < 2) return Json(true);
  const auto values = values_of_items(document, parts);
  if (!values) return {};
  const size_t most = least_of(parts, "maxItems", values->size());
  size_t orders = 1, of_all = 0;
  for (size_t i = 0; i <= most && i <= values->size(); ++i) {
    of_all += orders;
    orders *= values->size() - i;
    if (of_all > kMostOrders) return {};
  }
  Json options = Json::array();
  for (size_t count = most_of(parts, "minItems", 0); count <= std::min(most, values->size()); ++count) {
    Json none = Json::array();
    add_orders(*values, count, none, options);
  }
  add_other_types(document, kArrayBit, given, options);
  return union_of(std::move(options));
}

Said say_contains(const Document& document, const Json& schema, const Schemas& given) {
  const Json& wanted = *find(schema, "contains");
  double least = 1, most = 0;
  read_number(schema, "minContains", least);
  const bool has_most = read_number(schema, "maxContains", most);
  if (least == 0 && !has_most) return Json(true);
  if ((document.types(given) & kArrayBit) == 0) return Json(true);
  Schemas parts;
  document.flatten(given, parts);
  const size_t places = least_of(parts, "maxItems", kMostPlaces + 1);
  if (places > kMostPlaces || least != 1 || has_most) return {};
  Json options = Json::array(), items = Json::array();
  for (size_t i = 0; i < places; ++i) {
    Json own = items;
    own.push_back(wanted);
    Json array = schema_of_types(kArrayBit);
    array["items"] = std::move(own);  // this way of old is read in every draft
    array["minItems"] = i + 1;
    options.push_back(std::move(array));
    items.push_back(Json::object());
  }
  add_other_types(document, kArrayBit, given, options);
  return union_of(std::move(options));
}

Said say_property_names(const Document& document, const Json& names, const Schemas& given) {
  if ((document.types(given) & kObjectBit) == 0) return Json(true);
  Schemas parts;
  Json none = schema_of_types(kObjectBit);
  none["maxProperties"] = 0;
  Json options = Json::array();
  if (!document.flatten({&names}, parts) || (document.types({&names}) & kStringBit) == 0) {
    options.push_back(std::move(none));
    add_other_types(document, kObjectBit, given, options);
    return union_of(std::move(options));
  }
  std::vector<std::string> patterns;
  for (const Json* part : parts) {
    Json texts = Json::array();
    double least = 0, most = 0;
    const bool has_least = read_number(*part, "minLength", least),
               has_most = read_number(*part, "maxLength", most);
    for (const auto& [key, value] : part->items()) {
      if (key == "pattern" && value.is_string()) patterns.push_back(value.get<std::string>());
      if (key == "enum" && value.is_array()) texts = value;
      if (key == "const") texts.push_back(value);
      if (key == "format" && value.is_string() && is_known_format(value.get<std::string>())) return {};
      for (const char* other : {"anyOf", "oneOf", "not", "if"}) {
        if (key == other) return {};
      }
    }
    if (has_least || has_most) {
      patterns.push_back("^(?s:.){" + std::to_string(static_cast<int64_t>(least)) + "," +
                         (has_most ? std::to_string(static_cast<int64_t>(most)) : "") + "}$");
    }
    if (texts.empty()) continue;
    std::string any;
    for (const Json& text : texts) {
      if (text.is_string()) any += (any.empty() ? "" : "|") + escaped_pattern(text.get<std::string>());
    }
    patterns.push_back("^(?:" + any + ")$");
  }
  if (patterns.empty()) return Json(true);
  Schemas objects;
  document.flatten(given, objects);
  const bool has_patterns = std::ranges::any_of(objects, [](const Json* part) {
    const Json* own = find(*part, "patternProperties");
    return own && own->size() > (pattern_of_all(*own) ? 1u : 0u);
  });
  if (patterns.size() != 1 || has_patterns) return {};
  Json properties = Json::object();
  properties[patterns[0]] = Json::object();
  Json out = schema_with("patternProperties", std::move(properties));
  out["additionalProperties"] = false;
  return out;
}

std::optional<std::string> pattern_of_all(const Json& patterns) {
  for (const auto& [pattern, schema] : patterns.items()) {
    for (const char* all : {"", ".*", "^.*$", "^.*", ".*$", "^", "$"}) {
      if (pattern == all) return pattern;
    }
  }
  return {};
}

Said say_unevaluated_properties(const Document& document, const Json& rest, const Schemas& given) {
  Schemas parts;
  document.flatten(given, parts);
  Json properties = Json::object(), patterns = Json::object();
  for (const Json* part : parts) {
    for (const auto& [key, value] : part->items()) {
      if (key == "additionalProperties") return Json(true);
      for (const char* other : {"anyOf", "oneOf", "if", "dependentSchemas", "$dynamicRef", "$recursiveRef"}) {
        if (key == other) return {};
      }
      if (key != "properties" && key != "patternProperties") continue;
      for (const auto& [name, own] : value.items())
        (key == "properties" ? properties : patterns)[name] = Json::object();
    }
  }
  Json out = schema_with("properties", std::move(properties));
  if (!patterns.empty()) out["patternProperties"] = std::move(patterns);
  out["additionalProperties"] = rest;
  return out;
}

Said say_unevaluated_items(const Document& document, const Json& rest, const Schemas& given) {
  Schemas parts;
  document.flatten(given, parts);
  size_t most = 0;
  for (const Json* part : parts) {
    for (const auto& [key, value] : part->items()) {
      for (const char* other : {"anyOf", "oneOf", "if", "contains", "$dynamicRef", "$recursiveRef"}) {
        if (key == other) return {};
      }
      if (key == "additionalItems" || (key == "items" && !value.is_array())) return Json(true);
      if (key == "items" || key == "prefixItems") most = std::max(most, value.size());
    }
  }
  if (rest == Json(false)) return schema_with("maxItems", most);
  Json items = Json::array();
  for (size_t i = 0; i < most; ++i) items.push_back(anything());
  if (items.empty()) return schema_with("items", rest);
  Json out = schema_with("items", std::move(items));
  out["additionalItems"] = rest;
  return out;
}

}  // namespace doppler::guidance
