#include "guidance/schema/document.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace doppler::guidance {
namespace {

constexpr int kMostSteps = 24, kDocumentMostNesting = 96;

struct TypeName {
  const char* name;
  uint8_t bits;
};
// In the order in which they are tried for a list.
constexpr TypeName kTypes[] = {{"null", kNullBit},       {"boolean", kBooleanBit}, {"number", kNumberBits},
                               {"integer", kIntegerBit}, {"string", kStringBit},   {"array", kArrayBit},
                               {"object", kObjectBit}};

// Objects below the root that have an "$id" ("id" in draft 4): places under "properties" may have a property of that
// name.
bool has_inner_id(const Json& json, std::string_view name, bool is_root, int depth) {
  if (depth > kDocumentMostNesting) return true;
  if (json.is_array()) {
    return std::any_of(json.begin(), json.end(),
                       [&](const Json& item) { return has_inner_id(item, name, false, depth + 1); });
  }
  for (const auto& [key, value] : json.items()) {
    if (!is_root && key == name && value.is_string() && !value.text().starts_with('#')) return true;
    if (has_inner_id(value, name, false, depth + 1)) return true;
  }
  return false;
}

// A step of a JSON pointer in an address: "a%25b~1c" is "a%b/c".
std::string unescaped(std::string_view part) {
  std::string out;
  for (size_t i = 0; i < part.size(); ++i) {
    unsigned code = 0;
    if (part[i] == '%' && i + 2 < part.size() &&
        std::from_chars(part.data() + i + 1, part.data() + i + 3, code, 16).ptr == part.data() + i + 3) {
      out += static_cast<char>(code);
      i += 2;
    } else {
      out += part[i];
    }
  }
  for (const auto& [from, to] : {std::pair("~1", "/"), std::pair("~0", "~")}) {
    for (size_t at = out.find(from); at != std::string::npos; at = out.find(from, at + 1))
      out.replace(at, 2, to);
  }
  return out;
}

const Json* step(const Json& at, const std::string& part) {
  if (at.is_object()) return find(at, part);
  size_t index = 0;
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
  if (!at.is_array() || error != std::errc() || end != part.data() + part.size() || index >= at.size())
    return nullptr;
  return &at[index];
}

}  // namespace

uint8_t type_bits(std::string_view name) {
  const auto* row =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return name == t.name; });
  return row == std::end(kTypes) ? 0 : row->bits;
}

uint8_t type_bits_of(const Json& value) {
  if (value.is_null()) return kNullBit;
  if (value.is_boolean()) return kBooleanBit;
  if (value.is_string()) return kStringBit;
  if (value.is_array()) return kArrayBit;
  if (value.is_object()) return kObjectBit;
  const auto number = value.get<double>();
  return std::floor(number) == number ? kIntegerBit : kFractionBit;
}

Json schema_of_types(uint8_t bits) {
  if (bits == kAllBits) return Json::object();
  Json names = Json::array();
  for (const TypeName& type : kTypes) {
    if ((bits & type.bits) != type.bits) continue;
    names.push_back(type.name);
    bits = static_cast<uint8_t>(bits & ~type.bits);
  }
  Json out = Json::object();
  if (names.size() == 1) {
    out["type"] = names[0];
  } else {
    out["type"] = std::move(names);
  }
  return out;
}

Document::Document(const Json& root) : root_(root) {
  const Json* draft = find(root, "$schema");
  const bool is_old = draft && draft->is_string() && draft->text().find("draft-04") != std::string::npos;
  has_inner_ids_ = has_inner_id(root, is_old ? "id" : "$id", true, 0);
}

const Json* Document::resolve(std::string_view reference) const {
  if (has_inner_ids_ || !reference.starts_with('#')) return nullptr;
  reference.remove_prefix(1);
  const Json* at = &root_;
  if (reference.empty()) return at;
  if (!reference.starts_with('/')) return nullptr;  // an anchor
  while (at && !reference.empty()) {
    reference.remove_prefix(1);
    const size_t end = std::min(reference.find('/'), reference.size());
    at = step(*at, unescaped(reference.substr(0, end)));
    reference.remove_prefix(end);
  }
  return at && (at->is_object() || at->is_boolean()) ? at : nullptr;
}

bool Document::flatten_one(const Json& schema, Schemas& out, int depth) const {
  if (schema == Json(false)) return false;
  if (!schema.is_object() || depth > kMostSteps || std::ranges::find(out, &schema) != out.end()) return true;
  out.push_back(&schema);
  const Json* reference = find(schema, "$ref");
  const Json* target = reference && reference->is_string() ? resolve(reference->get<std::string>()) : nullptr;
  if (target && !flatten_one(*target, out, depth + 1)) return false;
  const Json* all = find(schema, "allOf");
  if (!all || !all->is_array()) return true;
  return std::all_of(all->begin(), all->end(),
                     [&](const Json& part) { return flatten_one(part, out, depth + 1); });
}

bool Document::flatten(const Schemas& schemas, Schemas& out) const {
  return std::ranges::all_of(schemas, [&](const Json* schema) { return flatten_one(*schema, out, 0); });
}

uint8_t Document::types(const Schemas& schemas, int depth) const {
  constexpr int kMostUnions = 4;
  Schemas parts;
  if (!flatten(schemas, parts)) return 0;
  uint8_t out = kAllBits;
  for (const Json* part : parts) {
    if (const Json* type = find(*part, "type")) {
      uint8_t own = 0;
      if (type->is_string()) own = type_bits(type->get<std::string>());
      if (type->is_array()) {
        for (const Json& name : *type)
          own |= name.is_string() ? type_bits(name.get<std::string>()) : uint8_t{0};
      }
      out &= own;
    }
    if (const Json* value = find(*part, "const")) out &= type_bits_of(*value);
    if (const Json* values = find(*part, "enum"); values && values->is_array()) {
      uint8_t own = 0;
      for (const Json& value : *values) own |= type_bits_of(value);
      out &= own;
    }
    for (const char* key : {"anyOf", "oneOf"}) {
      const Json* options = find(*part, key);
      if (!options || !options->is_array() || depth == kMostUnions) continue;
      uint8_t own = 0;
      for (const Json& option : *options) own |= types({&option}, depth + 1);
      out &= own;
    }
  }
  return out;
}

bool read_number(const Json& schema, const char* key, double& out) {
  const Json* value = find(schema, key);
  if (!value || !value->is_number()) return false;
  out = value->get<double>();
  return true;
}

bool holds_text(const Json* list, std::string_view text) {
  return list && list->is_array() &&
         std::any_of(list->begin(), list->end(), [&](const Json& item) { return item == Json(text); });
}

}  // namespace doppler::guidance
