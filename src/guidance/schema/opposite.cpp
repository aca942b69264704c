#include "guidance/schema/opposite.h"

#include <algorithm>

#include "guidance/schema/formats.h"
#include "guidance/schema/opposite_values.h"
#include "guidance/schema/overlap.h"

namespace doppler::guidance {
namespace {

constexpr int kMostTurns = 12;
constexpr size_t kMostParts = 256;        // of one union
constexpr double kMostExpandedItems = 8;  // an array that is taken apart item by item

Json object_with(const std::string& name, Json schema, bool is_there) {
  Json properties = Json::object();
  properties[name] = std::move(schema);
  Json out = with("object", "properties", std::move(properties));
  if (!is_there) return out;
  out["required"] = Json::array();
  out["required"].push_back(name);
  return out;
}

// Each keyword adds schemas of what it takes out. A function answers false if no schema can say that.
class Opposite {
 public:
  Opposite(const Document& document, NoOpposite& why) : document_(document), why_(why) {}

  std::optional<Json> of(const Json& schema, const Schemas& given, int depth) {
    if (schema.is_boolean()) return Json(!schema.get<bool>());
    if (!schema.is_object() || depth > kMostTurns) {
      why_.keyword = "$ref";
      return {};
    }
    depth_ = depth;
    Json parts = Json::array();
    for (const auto& [key, value] : schema.items()) {
      Json own = Json::array();
      if (!add(schema, key, value, given, own)) {
        if (why_.keyword.empty()) why_.keyword = key;
        return {};
      }
      for (const Json& part : own) {
        if (may_overlap(document_, {&part}, given)) parts.push_back(part);
      }
      depth_ = depth;
      if (parts.size() > kMostParts) return {};
    }
    if (parts.empty()) return Json(false);
    if (parts.size() == 1) return Json(parts[0]);
    return list_of("anyOf", std::move(parts));
  }

 private:
  bool add(const Json& schema, const std::string& key, const Json& value, const Schemas& given, Json& out) {
    const uint8_t types = document_.types(given);
    if (key == "type") return add_types(value, types, out);
    if (key == "const") {
      Json values = Json::array();
      values.push_back(value);
      return add_values(values, types, out);
    }
    if (key == "enum") return add_values(value, types, out);
    if (key == "$ref") return add_reference(value, given, out);
    if (key == "allOf" || key == "anyOf" || key == "oneOf") return add_union(key, value, given, out);
    if (key == "not") return out.push_back(value), true;
    if (key == "$dynamicRef" || key == "$recursiveRef") return false;
    if (key == "if") return add_condition(schema, value, given, out);
    if (types & kNumberBits) {
      if (key == "multipleOf") return false;
      if (add_bound(schema, key, value, out)) return true;
    }
    if (types & kStringBit) {
      if (key == "minLength") return add_count("string", "maxLength", value, -1, out);
      if (key == "maxLength") return add_count("string", "minLength", value, 1, out);
      if (key == "pattern") return add_pattern(value, out);
      if (key == "format") return !value.is_string() || !is_known_format(value.get<std::string>());
    }
    if (types & kArrayBit) {
      if (key == "minItems") return add_count("array", "maxItems", value, -1, out);
      if (key == "maxItems") return add_count("array", "minItems", value, 1, out);
      if (key == "uniqueItems") return value == Json(false);
      if (key == "contains") return add_contains(schema, value, given, out);
      if (key == "items" || key == "prefixItems" || key == "additionalItems")
        return add_items(schema, key, value, given, out);
      if (key == "unevaluatedItems") return value == Json(true);
    }
    if (types & kObjectBit) return add_object(schema, key, value, given, out);
    return true;
  }

  bool add_reference(const Json& value, const Schemas& given, Json& out) {
    const Json* target = value.is_string() ? document_.resolve(value.get<std::string>()) : nullptr;
    return target && add_opposite(*target, given, out);
  }

  bool add_opposite(const Json& schema, const Schemas& given, Json& out) {
    auto made = of(schema, given, depth_ + 1);
    if (!made) return false;
    out.push_back(std::move(*made));
    return true;
  }

  bool add_union(const std::string& key, const Json& value, const Schemas& given, Json& out) {
    if (!value.is_array()) return false;
    const int depth = depth_;
    if (key == "oneOf") {
      // "oneOf" has an opposite only if no two of its schemas can hold at once: no schema holds.
      for (size_t i = 0; i < value.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          Schemas with_one = given;
          with_one.push_back(&value[i]);
          if (may_overlap(document_, with_one, {&value[j]})) return false;
        }
      }
    }
    Json all = Json::array();
    for (const Json& part : value) {
      depth_ = depth;
      if (!add_opposite(part, given, key == "allOf" ? out : all)) return false;
    }
    if (key != "allOf") out.push_back(list_of("allOf", std::move(all)));
    return true;
  }

  // (if and not then) or (not if and not else)
  bool add_condition(const Json& schema, const Json& condition, const Schemas& given, Json& out) {
    const int depth = depth_;
    const auto both = [&](Json a, Json b) {
      Json all = Json::array();
      all.push_back(std::move(a));
      all.push_back(std::move(b));
      out.push_back(list_of("allOf", std::move(all)));
    };
    Json made = Json::array();
    if (const Json* then = find(schema, "then")) {
      if (!add_opposite(*then, given, made)) return false;
      both(condition, made.back());
    }
    if (const Json* otherwise = find(schema, "else")) {
      depth_ = depth;
      Json not_if = Json::array(), not_else = Json::array();
      if (!add_opposite(condition, given, not_if)) return false;
      depth_ = depth;
      if (!add_opposite(*otherwise, given, not_else)) return false;
      both(not_if[0], not_else[0]);
    }
    return true;
  }

  // None of the items is so.
  bool add_contains(const Json& schema, const Json& value, const Schemas& given, Json& out) {
    if (schema.contains("maxContains") || schema.contains("minContains")) return false;
    (void)given;
    Json items = Json::array();
    if (!add_opposite(value, {}, items)) return false;
    out.push_back(with("array", "items", items[0]));
    return true;
  }

  // The item at one place is not so. Places that all items have are counted, as far as the given schemas end them.
  bool add_items(const Json& schema, const std::string& key, const Json& value, const Schemas& given,
                 Json& out) {
    const Json* items = find(schema, "items");
    const Json* prefix = items && items->is_array() ? items : find(schema, "prefixItems");
    const size_t before = prefix && prefix->is_array() ? prefix->size() : 0;
    if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i) {
        if (!add_item(value[i], i, out)) return false;
      }
      return true;
    }
    if (key == "additionalItems" && !(items && items->is_array())) return true;  // says nothing then
    if (value == Json(true) || (value.is_object() && value.empty())) return true;
    if (value == Json(false)) {
      out.push_back(with("array", "minItems", before + 1));
      return true;
    }
    double most = kMostExpandedItems + 1;
    Schemas parts, own_items;
    document_.flatten(given, parts);
    for (const Json* part : parts) {
      if (const Json* own = find(*part, "items"); own && !own->is_array()) own_items.push_back(own);
    }
    // No item that is given can be so.
    if (before == 0 && !own_items.empty() && !may_overlap(document_, own_items, {&value})) {
      out.push_back(with("array", "minItems", 1));
      return true;
    }
    for (const Json* part : parts) {
      double own = 0;
      if (read_number(*part, "maxItems", own)) most = std::min(most, own);
    }
    if (most > kMostExpandedItems) return false;
    for (size_t i = before; i < static_cast<size_t>(most); ++i) {
      if (!add_item(value, i, out)) return false;
    }
    return true;
  }
  bool add_item(const Json& schema, size_t place, Json& out) {
    const int depth = depth_;
    Json made = Json::array();
    if (!add_opposite(schema, {}, made)) return false;
    depth_ = depth;
    Json items = Json::array();
    for (size_t i = 0; i < place; ++i) items.push_back(Json::object());
    items.push_back(made[0]);
    // This way of old is read in every draft.
    Json array = with("array", "items", std::move(items));
    array["minItems"] = place + 1;
    out.push_back(std::move(array));
    return true;
  }

  bool add_object(const Json& schema, const std::string& key, const Json& value, const Schemas& given,
                  Json& out) {
    if (key == "minProperties") return add_count("object", "maxProperties", value, -1, out);
    if (key == "maxProperties") return add_count("object", "minProperties", value, 1, out);
    if (key == "required") {
      if (!value.is_array()) return true;  // draft 3
      for (const Json& name : value) {
        if (name.is_string()) out.push_back(object_with(name.get<std::string>(), Json(false), false));
      }
      return true;
    }
    if (key == "properties") {
      const int depth = depth_;
      for (const auto& [name, own] : value.items()) {
        Json made = Json::array();
        depth_ = depth;
        if (!add_opposite(own, property_schemas(document_, given, name), made)) return false;
        if (!(made[0] == Json(false))) out.push_back(object_with(name, made[0], true));
      }
      return true;
    }
    if (key == "additionalProperties") return add_rest(schema, value, given, out);
    if (key == "patternProperties") {
      return std::ranges::all_of(value.items(), [](const auto& item) {
        return item.value == Json(true) || (item.value.is_object() && item.value.empty());
      });
    }
    if (key == "propertyNames") return add_names(value, out);
    if (key == "dependencies" || key == "dependentRequired" || key == "dependentSchemas")
      return add_dependencies(value, given, out);
    return key != "unevaluatedProperties" || value == Json(true);
  }

  // A further property is there that is not so. The allowed names must be known.
  bool add_rest(const Json& schema, const Json& value, const Schemas& given, Json& out) {
    if (value == Json(true) || (value.is_object() && value.empty())) return true;
    const Json* patterns = find(schema, "patternProperties");
    if (patterns && !patterns->empty()) return false;
    const Json* properties = find(schema, "properties");
    const auto is_further = [&](const std::string& name) {
      return !properties || !properties->contains(name);
    };
    Schemas parts;
    document_.flatten(given, parts);
    for (const Json* part : parts) {
      const Json* required = find(*part, "required");
      if (!required || !required->is_array() || !(value == Json(false))) continue;
      for (const Json& name : *required) {
        if (!name.is_string() || !is_further(name.get<std::string>())) continue;
        out.push_back(schema_of_types(kObjectBit));
        return true;
      }
    }
    std::vector<std::string> names;
    if (!has_closed_names(document_, given, names)) return false;
    const int depth = depth_;
    for (const std::string& name : names) {
      if (!is_further(name)) continue;
      Json made = Json::array();
      depth_ = depth;
      if (!add_opposite(value, property_schemas(document_, given, name), made)) return false;
      out.push_back(object_with(name, made[0], true));
    }
    return true;
  }

  // A name is there that is not so: where that leaves a few names.
  bool add_names(const Json& value, Json& out) {
    Json made = Json::array();
    static const Json text = schema_of_types(kStringBit);
    if (!add_opposite(value, {&text}, made)) return false;
    const Json& others = made[0];
    if (others == Json(false)) return true;
    const Json* one = others.is_object() ? find(others, "const") : nullptr;
    const Json* several = others.is_object() ? find(others, "enum") : nullptr;
    if (one && one->is_string()) {
      out.push_back(object_with(one->get<std::string>(), Json(true), true));
      return true;
    }
    if (!several || !several->is_array()) return false;
    for (const Json& name : *several) {
      if (name.is_string()) out.push_back(object_with(name.get<std::string>(), Json(true), true));
    }
    return true;
  }

  bool add_dependencies(const Json& value, const Schemas& given, Json& out) {
    const int depth = depth_;
    for (const auto& [name, wanted] : value.items()) {
      const Json is_there = object_with(name, Json(true), true);
      Json made = Json::array();
      depth_ = depth;
      if (wanted.is_array()) {
        if (!add_object(value, "required", wanted, given, made)) return false;
      } else if (!add_opposite(wanted, given, made)) {
        return false;
      }
      for (const Json& part : made) {
        Json both = Json::array();
        both.push_back(is_there);
        both.push_back(part);
        out.push_back(list_of("allOf", std::move(both)));
      }
    }
    return true;
  }

  const Document& document_;
  NoOpposite& why_;
  int depth_ = 0;
};

}  // namespace

std::optional<Json> opposite(const Document& document, const Json& schema, const Schemas& given,
                             NoOpposite& why) {
  return Opposite(document, why).of(schema, given, 0);
}

}  // namespace doppler::guidance
