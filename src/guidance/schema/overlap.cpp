#include "guidance/schema/overlap.h"

#include <algorithm>
#include <limits>

namespace doppler::guidance {
namespace {

constexpr int kMostLooks = 8;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Json& nothing() {
  static const Json schema(false);
  return schema;
}

// From the parts of a flattened list.
Schemas property_of(const Schemas& parts, std::string_view name) {
  Schemas out;
  for (const Json* part : parts) {
    const Json* properties = find(*part, "properties");
    const Json* own = properties ? find(*properties, name) : nullptr;
    const Json* patterns = find(*part, "patternProperties");
    const Json* rest = find(*part, "additionalProperties");
    if (own) out.push_back(own);
    if (!own && rest && (!patterns || patterns->empty())) out.push_back(rest);
  }
  return out;
}

// Numbers, lengths and counts as intervals.
struct Interval {
  double low = -kInfinity, high = kInfinity;
  bool is_open_low = false, is_open_high = false;

  void raise(double value, bool is_open) {
    if (value > low || (value == low && is_open)) low = value, is_open_low = is_open;
  }
  void lower(double value, bool is_open) {
    if (value < high || (value == high && is_open)) high = value, is_open_high = is_open;
  }
  bool is_empty() const { return low > high || (low == high && (is_open_low || is_open_high)); }
};

Interval interval_of(const Schemas& parts, const char* least, const char* most) {
  Interval out;
  for (const Json* part : parts) {
    double value = 0;
    if (read_number(*part, least, value)) out.raise(value, false);
    if (read_number(*part, most, value)) out.lower(value, false);
  }
  return out;
}

Interval range_of(const Schemas& parts) {
  Interval out;
  for (const Json* part : parts) {
    double value = 0;
    // In draft 4 these two were no numbers, but true.
    if (read_number(*part, "minimum", value))
      out.raise(value, part->contains("exclusiveMinimum") && (*part)["exclusiveMinimum"] == Json(true));
    if (read_number(*part, "maximum", value))
      out.lower(value, part->contains("exclusiveMaximum") && (*part)["exclusiveMaximum"] == Json(true));
    if (read_number(*part, "exclusiveMinimum", value)) out.raise(value, true);
    if (read_number(*part, "exclusiveMaximum", value)) out.lower(value, true);
  }
  return out;
}

class Overlap {
 public:
  explicit Overlap(const Document& document) : document_(document) {}

  bool may_hold(const Schemas& schemas, int depth) {
    Schemas parts;
    return document_.flatten(schemas, parts) && may_all_hold(parts, depth);
  }

 private:
  // The parts are flat.
  bool may_all_hold(const Schemas& parts, int depth) {
    if (--budget_ < 0) return true;
    const uint8_t types = document_.types(parts);
    if (types == 0) return false;
    if (depth == kMostLooks) return true;
    if (!has_option(parts, depth)) return false;
    if (const auto values = finite_values(parts)) {
      return std::ranges::any_of(*values,
                                 [&](const Json* value) { return may_accept(parts, *value, depth); });
    }
    constexpr uint8_t kSimple = kNullBit | kBooleanBit;
    if (types & kSimple) return true;
    if ((types & kNumberBits) && !range_of(parts).is_empty()) return true;
    if ((types & kStringBit) && !interval_of(parts, "minLength", "maxLength").is_empty()) return true;
    if ((types & kArrayBit) && may_be_array(parts, depth)) return true;
    return (types & kObjectBit) && may_be_object(parts, depth);
  }

  // Each union needs an option that goes with all the rest.
  bool has_option(const Schemas& parts, int depth) {
    for (const Json* part : parts) {
      for (const char* key : {"anyOf", "oneOf"}) {
        const Json* options = find(*part, key);
        if (!options || !options->is_array()) continue;
        const auto fits = [&](const Json& option) {
          Schemas with = without_unions(parts);
          return document_.flatten({&option}, with) && may_all_hold(with, depth + 1);
        };
        if (std::none_of(options->begin(), options->end(), fits)) return false;
      }
    }
    return true;
  }
  static Schemas without_unions(const Schemas& parts) {
    Schemas out;
    std::ranges::copy_if(parts, std::back_inserter(out), [](const Json* part) {
      return !part->contains("anyOf") && !part->contains("oneOf");
    });
    return out;
  }

  std::optional<Schemas> finite_values(const Schemas& parts) const {
    for (const Json* part : parts) {
      if (const Json* value = find(*part, "const")) return Schemas{value};
      if (const Json* values = find(*part, "enum"); values && values->is_array()) {
        Schemas out;
        for (const Json& value : *values) out.push_back(&value);
        return out;
      }
    }
    return {};
  }

  // False: some keyword of the parts takes the value out.
  bool may_accept(const Schemas& parts, const Json& value, int depth) const {
    const uint8_t type = type_bits_of(value);
    if ((document_.types(parts) & type) == 0) return false;
    for (const Json* part : parts) {
      if (const Json* wanted = find(*part, "const"); wanted && !(*wanted == value)) return false;
      if (const Json* values = find(*part, "enum");
          values && values->is_array() && std::find(values->begin(), values->end(), value) == values->end())
        return false;
    }
    if (type & kNumberBits) {
      Interval range = range_of(parts);
      range.raise(value.get<double>(), false);
      range.lower(value.get<double>(), false);
      return !range.is_empty();
    }
    if (type == kStringBit) return may_have_length(parts, value.get<std::string>());
    if (type != kObjectBit || depth == kMostLooks) return true;
    for (const Json* part : parts) {
      const Json* required = find(*part, "required");
      if (!required || !required->is_array()) continue;
      for (const Json& name : *required) {
        if (name.is_string() && !value.contains(name.get<std::string>())) return false;
      }
    }
    for (const auto& [name, item] : value.items()) {
      Schemas own;
      if (!document_.flatten(property_of(parts, name), own) || !may_accept(own, item, depth + 1))
        return false;
    }
    return true;
  }
  static bool may_have_length(const Schemas& parts, const std::string& text) {
    const auto length = static_cast<double>(
        std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
    Interval lengths = interval_of(parts, "minLength", "maxLength");
    lengths.raise(length, false);
    lengths.lower(length, false);
    return !lengths.is_empty();
  }

  bool may_be_array(const Schemas& parts, int depth) {
    const Interval counts = interval_of(parts, "minItems", "maxItems");
    if (counts.is_empty()) return false;
    if (counts.low < 1) return true;  // the empty one is in both
    Schemas first;
    for (const Json* part : parts) {
      const Json* prefix = find(*part, "prefixItems");
      const Json* items = find(*part, "items");
      if (items && items->is_array()) prefix = items;
      if (prefix && prefix->is_array() && !prefix->empty()) {
        first.push_back(&(*prefix)[0]);
      } else if (items && !items->is_array()) {
        first.push_back(items);
      }
    }
    return may_hold(first, depth + 1);
  }

  bool may_be_object(const Schemas& parts, int depth) {
    if (interval_of(parts, "minProperties", "maxProperties").is_empty()) return false;
    for (const Json* part : parts) {
      const Json* required = find(*part, "required");
      if (!required || !required->is_array()) continue;
      for (const Json& name : *required) {
        if (name.is_string() && !may_hold(property_of(parts, name.get<std::string>()), depth + 1))
          return false;
      }
    }
    return true;
  }

  const Document& document_;
  int budget_ = 20'000;  // lists of parts looked at; then nothing more is proved
};

}  // namespace

bool may_overlap(const Document& document, const Schemas& a, const Schemas& b) {
  Schemas both = a;
  both.insert(both.end(), b.begin(), b.end());
  return Overlap(document).may_hold(both, 0);
}

Schemas property_schemas(const Document& document, const Schemas& schemas, std::string_view name) {
  Schemas parts;
  if (!document.flatten(schemas, parts)) return {&nothing()};
  return property_of(parts, name);
}

bool is_required(const Document& document, const Schemas& schemas, std::string_view name) {
  Schemas parts;
  document.flatten(schemas, parts);
  return std::ranges::any_of(parts,
                             [&](const Json* part) { return holds_text(find(*part, "required"), name); });
}

bool has_closed_names(const Document& document, const Schemas& schemas, std::vector<std::string>& names) {
  Schemas parts;
  document.flatten(schemas, parts);
  for (const Json* part : parts) {
    const Json* rest = find(*part, "additionalProperties");
    const Json* patterns = find(*part, "patternProperties");
    if (!rest || !(*rest == Json(false)) || (patterns && !patterns->empty())) continue;
    names.clear();
    if (const Json* properties = find(*part, "properties"); properties && properties->is_object()) {
      for (const auto& [name, schema] : properties->items()) names.push_back(name);
    }
    return true;
  }
  return false;
}

}  // namespace doppler::guidance
