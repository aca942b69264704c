// "minProperties" and "maxProperties" as unions over the present properties (alternatives.h).
#include <algorithm>
#include <set>

#include "guidance/schema/alternatives.h"
#include "guidance/schema/overlap.h"

namespace doppler::guidance {
namespace {

// Adds every choice of `count` names, as the schema that fill(choice) makes. False: there are too many.
template <class Fill>
bool add_choices(const std::vector<std::string>& names, size_t count, size_t from,
                 std::vector<std::string>& chosen, const Fill& fill, Json& options) {
  constexpr size_t kMostChoices = 128;
  if (chosen.size() == count) {
    options.push_back(fill(chosen));
    return options.size() <= kMostChoices;
  }
  for (size_t i = from; i < names.size(); ++i) {
    chosen.push_back(names[i]);
    if (!add_choices(names, count, i + 1, chosen, fill, options)) return false;
    chosen.pop_back();
  }
  return true;
}

Json requiring(const std::vector<std::string>& names) {
  Json out = Json::object();
  out["required"] = Json(names);
  return out;
}
Json lacking(const std::vector<std::string>& names) {
  Json properties = Json::object();
  for (const std::string& name : names) properties[name] = false;
  Json out = Json::object();
  out["properties"] = std::move(properties);
  return out;
}

std::set<std::string> required_names(const Document& document, const Schemas& given) {
  std::set<std::string> out;
  Schemas parts;
  document.flatten(given, parts);
  for (const Json* part : parts) {
    const Json* list = find(*part, "required");
    for (const Json& name : list && list->is_array() ? *list : Json::array()) {
      if (name.is_string()) out.insert(name.text());
    }
  }
  return out;
}

}  // namespace

bool may_count_a_name_twice(const Document& document, const Json& schema, const Schemas& given) {
  double wanted = 0;
  std::vector<std::string> names;
  if (!read_number(schema, "minProperties", wanted) || has_closed_names(document, given, names)) return false;
  return wanted > static_cast<double>(required_names(document, given).size() + 1);
}

Said say_property_count(const Document& document, const Json& schema, const std::string& key,
                        const Schemas& given) {
  const Json* properties = find(schema, "properties");
  double value = 0;
  if (!properties || schema.contains("patternProperties") || !read_number(schema, key.c_str(), value) ||
      value < 0 || value > 1e6)
    return {};
  const auto wanted = static_cast<size_t>(value);
  std::vector<std::string> names, optional;
  const bool is_closed = has_closed_names(document, given, names);
  if (!is_closed) {
    for (const auto& [name, own] : properties->items()) names.push_back(name);
  }
  const std::set<std::string> required_ones = required_names(document, given);
  const size_t required = required_ones.size();
  for (const std::string& name : names) {
    const Schemas own = property_schemas(document, given, name);
    const bool is_absent = std::ranges::any_of(own, [](const Json* part) { return *part == Json(false); });
    if (!required_ones.contains(name) && !is_absent) optional.push_back(name);
  }
  if (optional.empty()) return {};
  const bool is_least = key == "minProperties";
  if (is_least && wanted <= required) return Json(true);
  if (!is_least && is_closed && wanted >= required + optional.size()) return Json(true);
  if (!is_least && wanted < required) return Json(false);
  Json options = Json::array();
  std::vector<std::string> chosen;
  if (is_closed) {
    const size_t count = is_least ? wanted - required : required + optional.size() - wanted;
    if (!add_choices(optional, count, 0, chosen, is_least ? requiring : lacking, options)) return {};
    return union_of(std::move(options));
  }
  // Names that the schema does not mention may be present too: the library counts them if the mentioned ones are
  // settled.
  if (wanted > required + 1) return {};
  Json rest = lacking(optional);
  rest[key] = wanted;
  for (const std::string& name : optional) {
    if (!is_least && wanted == required) break;
    Json one = requiring({name});
    if (!is_least) {
      std::vector<std::string> others = optional;
      std::erase(others, name);
      one["properties"] = lacking(others)["properties"];
      one[key] = wanted;
    }
    options.push_back(std::move(one));
  }
  options.push_back(std::move(rest));
  return union_of(std::move(options));
}

}  // namespace doppler::guidance
