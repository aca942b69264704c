#include "guidance/schema/rewrite.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "guidance/schema/alternatives.h"
#include "guidance/schema/formats.h"
#include "guidance/schema/overlap.h"

namespace doppler::guidance {
namespace {

constexpr int kMostLevels = 96;
constexpr size_t kMostSchemas = 50'000;  // made or looked at
constexpr size_t kMostProducts =
    2'048;  // of the unions that hold at one place, which the library multiplies out

constexpr const char* kDrafts[] = {
    "https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema"};

// Keywords whose values are schemas, by how these lie in them.
constexpr const char* kSchemas[] = {"additionalProperties", "additionalItems", "items"};
constexpr const char* kLists[] = {"prefixItems", "items"};
constexpr const char* kMaps[] = {"properties", "patternProperties", "$defs", "definitions"};
// Beside a reference they change nothing.
constexpr const char* kAnnotations[] = {"title",    "description", "default",    "examples", "$comment",
                                        "readOnly", "writeOnly",   "deprecated", "$defs",    "definitions",
                                        "$id",      "id",          "$schema",    "$anchor",  "x-guidance"};

template <size_t N>
bool is_one_of(const char* const (&names)[N], std::string_view key) {
  return std::ranges::find(names, key) != std::end(names);
}

std::string step_of(std::string_view key) {
  std::string out = "/";
  for (const char c : key) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

class Rewriter {
 public:
  explicit Rewriter(const Json& root) : root_(root), document_(root) {
    const Json* options = find(root, "x-guidance");
    const auto is_on = [&](const char* key) {
      const Json* option = options ? find(*options, key) : nullptr;
      return option && *option == Json(true);
    };
    is_lenient_ = is_on("lenient");
    takes_any_ = is_lenient_ || is_on("coerce_one_of");
  }

  Result<Json> run() {
    DP_TRY(Json out, rewrite(root_, {}, "#", 0));
    if (!out.is_object()) return out;
    if (const Json* options = find(root_, "x-guidance")) out["x-guidance"] = *options;
    for (auto& [name, definition] : definitions_) out["$defs"][name] = std::move(definition);
    return out;
  }

 private:
  // A schema during its rewriting: the part that is kept, and the schemas that hold besides.
  struct Made {
    Json kept = Json::object();
    Json besides = Json::array();
    size_t products = 1;
  };

  Result<Json> rewrite(const Json& schema, Schemas given, const std::string& path, int depth) {
    if (!schema.is_object()) return Json(schema);
    if (depth > kMostLevels || ++count_ > kMostSchemas) {
      return fail(ErrorKind::kInvalidInput, "The JSON schema is too large or too deep at %s.",
                  printable(path, 200).c_str());
    }
    if (const auto name = recursive_extension(schema)) return extend(schema, *name, path, depth);
    given.push_back(&schema);
    Made made;
    for (const auto& [key, value] : schema.items()) {
      const Place place{schema, key, value, given, path, depth};
      DP_TRY(const bool is_said, say(place, made));
      if (!is_said) DP_CHECK(keep(place, made));
    }
    if (made.products > kMostProducts) return refused("allOf", path, "its alternatives are too many");
    if (made.besides.empty()) return std::move(made.kept);
    Json& all = made.kept["allOf"];
    if (!all.is_array()) all = Json::array();
    for (Json& part : made.besides) all.push_back(std::move(part));
    return std::move(made.kept);
  }

  struct Place {
    const Json& schema;
    const std::string& key;
    const Json& value;
    const Schemas& given;
    const std::string& path;
    int depth;
  };

  static Unexpected refused(std::string_view key, const std::string& path, const std::string& why) {
    return fail(ErrorKind::kInvalidInput, "\"%s\" at %s cannot be honoured%s%s.", std::string(key).c_str(),
                printable(path, 160).c_str(), why.empty() ? "" : ": ", why.c_str());
  }

  // True: other keywords express it, or it means nothing.
  Result<bool> say(const Place& at, Made& made) {
    const std::string& key = at.key;
    if (key == "then" || key == "else" || key == "minContains" || key == "maxContains" || key == "x-guidance")
      return true;
    if (key == "$schema") return !is_known_draft(at.value);
    if (key == "$ref" && at.value.is_string()) return move_target(at, made);
    if (key == "additionalProperties" && has_pattern_of_all(at.schema))
      return true;  // no name is left for it
    if (key == "patternProperties") return say_patterns(at, made);
    if (key == "format") return at.value.is_string() && !is_known_format(at.value.get<std::string>());
    const bool is_count = key == "minProperties" || key == "maxProperties";
    NoOpposite why;
    Said said;
    std::string hint;
    if (key == "not") {
      said = opposite(document_, at.value, at.given, why);
    } else if (key == "if") {
      said = say_condition(document_, at.schema, at.given, why);
    } else if (key == "oneOf" && at.value.is_array() && !takes_any_) {
      said = say_one_of(document_, at.value, at.given, why);
      hint = "; {\"x-guidance\": {\"coerce_one_of\": true}} in the schema takes it as anyOf";
    } else if (key == "dependencies" || key == "dependentRequired" || key == "dependentSchemas") {
      said = say_dependencies(document_, at.value, at.given);
    } else if (key == "uniqueItems") {
      said = say_unique_items(document_, at.schema, at.given);
    } else if (key == "contains") {
      said = say_contains(document_, at.schema, at.given);
    } else if (key == "propertyNames") {
      said = say_property_names(document_, at.value, at.given);
    } else if (key == "unevaluatedProperties") {
      said = say_unevaluated_properties(document_, at.value, {&at.schema});
    } else if (key == "unevaluatedItems") {
      said = say_unevaluated_items(document_, at.value, {&at.schema});
    } else if (is_count) {
      said = say_property_count(document_, at.schema, key, at.given);
    } else {
      return false;
    }
    if (!said) {
      if (is_lenient_) return false;
      if (key == "minProperties" && may_count_a_name_twice(document_, at.schema, at.given))
        return refused(key, at.path, "names that the schema does not mention may come twice");
      if (is_count) return false;
      const std::string reason =
          why.keyword.empty() ? "" : "the opposite of \"" + why.keyword + "\" is no schema here";
      return refused(key, at.path, reason.empty() && !hint.empty() ? hint.substr(2) : reason + hint);
    }
    if (*said == Json(true)) return true;
    DP_TRY(Json part, rewrite(*said, at.given, at.path + step_of(key), at.depth + 1));
    note_union(part, made);
    made.besides.push_back(std::move(part));
    return true;
  }

  static bool has_pattern_of_all(const Json& schema) {
    const Json* patterns = find(schema, "patternProperties");
    return patterns && pattern_of_all(*patterns);
  }
  // The library takes patterns if no name matches two. A pattern that matches all names equals "additionalProperties".
  Result<bool> say_patterns(const Place& at, Made& made) {
    const auto all = pattern_of_all(at.value);
    if (!all) return false;
    Json part = Json::object(), others = at.value;
    DP_TRY(part["additionalProperties"],
           rewrite(at.value[*all], {}, at.path + "/patternProperties/" + *all, at.depth + 1));
    made.besides.push_back(std::move(part));
    others.erase(*all);
    if (!others.empty()) DP_CHECK(keep({at.schema, at.key, others, at.given, at.path, at.depth}, made));
    return true;
  }

  // A reference to a place that is rewritten gets a definition of its own.
  Result<bool> move_target(const Place& at, Made& made) {
    const std::string& reference = at.value.text();
    const Json* target = is_kept_place(reference) ? nullptr : document_.resolve(reference);
    if (!target) return false;
    const auto [known, is_new] = moved_.try_emplace(reference, format_text("at-%zu", moved_.size() + 1));
    const std::string name = known->second;
    if (is_new) {
      DP_TRY(definitions_[name], rewrite(*target, {}, reference, at.depth + 1));
    }
    made.kept["$ref"] = "#/$defs/" + name;
    return true;
  }
  static bool is_kept_place(std::string_view reference) {
    if (!reference.starts_with("#/")) return true;
    const std::vector<std::string> steps = split(reference.substr(2), '/');
    for (size_t i = 0; i < steps.size(); ++i) {
      const bool has_more = i + 1 < steps.size();
      const bool is_list = is_one_of(kLists, steps[i]) || steps[i] == "allOf" || steps[i] == "anyOf";
      const bool is_index = has_more && !steps[i + 1].empty() &&
                            std::ranges::all_of(steps[i + 1], [](char c) { return c >= '0' && c <= '9'; });
      if (is_one_of(kMaps, steps[i]) || (is_list && is_index)) {
        ++i;
      } else if (!is_one_of(kSchemas, steps[i])) {
        return false;
      }
    }
    return true;
  }

  // The keyword stays; the schemas in it are rewritten.
  Result<void> keep(const Place& at, Made& made) {
    const std::string path = at.path + step_of(at.key);
    Json& out = made.kept[at.key];
    if (is_one_of(kMaps, at.key) && at.value.is_object()) {
      out = Json::object();
      for (const auto& [name, inner] : at.value.items()) {
        DP_TRY(out[name], rewrite(inner, {}, path + step_of(name), at.depth + 1));
      }
      return {};
    }
    const bool holds_here = at.key == "allOf" || at.key == "anyOf" || at.key == "oneOf";
    if ((holds_here || is_one_of(kLists, at.key)) && at.value.is_array()) {
      out = Json::array();
      for (size_t i = 0; i < at.value.size(); ++i) {
        DP_TRY(Json inner, rewrite(at.value[i], holds_here ? at.given : Schemas(),
                                   path + "/" + std::to_string(i), at.depth + 1));
        if (at.key == "allOf") note_union(inner, made);
        out.push_back(std::move(inner));
      }
      if (at.key == "anyOf") note_union(made.kept, made);
      return {};
    }
    if (is_one_of(kSchemas, at.key)) {
      DP_TRY(out, rewrite(at.value, {}, path, at.depth + 1));
      return {};
    }
    out = at.value;
    return {};
  }

  static void note_union(const Json& part, Made& made) {
    const Json* options = find(part, "anyOf");
    if (options && options->is_array() && !options->empty() && made.products <= kMostProducts)
      made.products *= options->size();
  }

  static bool is_known_draft(const Json& value) {
    if (!value.is_string()) return false;
    std::string name = value.get<std::string>();
    while (name.ends_with('#')) name.pop_back();
    return is_one_of(kDrafts, name);
  }

  // The name of the definition that replaces a reference with other keywords beside it, if the target refers to itself:
  // the library would go around in circles.
  std::optional<std::string> recursive_extension(const Json& schema) {
    const Json* reference = find(schema, "$ref");
    if (!reference || !reference->is_string() || schema.size() == 1) return {};
    const bool has_others = std::ranges::any_of(schema.items(), [](const auto& item) {
      return item.key != "$ref" && !is_one_of(kAnnotations, item.key);
    });
    const auto name = reference->get<std::string>();
    const Json* target = has_others ? document_.resolve(name) : nullptr;
    if (!target || !target->is_object() || target == &root_) return {};
    std::set<std::string> seen;
    return refers_to(*target, name, seen, 0) ? std::optional(name) : std::nullopt;
  }
  bool refers_to(const Json& at, const std::string& name, std::set<std::string>& seen, int depth) const {
    if (depth > kMostLevels) return false;
    if (at.is_array()) {
      return std::any_of(at.begin(), at.end(),
                         [&](const Json& item) { return refers_to(item, name, seen, depth + 1); });
    }
    for (const auto& [key, value] : at.items()) {
      if (key != "$ref" || !value.is_string()) {
        if (refers_to(value, name, seen, depth + 1)) return true;
        continue;
      }
      const auto own = value.get<std::string>();
      if (own == name) return true;
      const Json* target = seen.insert(own).second ? document_.resolve(own) : nullptr;
      if (target && refers_to(*target, name, seen, depth + 1)) return true;
    }
    return false;
  }

  Result<Json> extend(const Json& schema, const std::string& reference, const std::string& path, int depth) {
    Json others = Json::object();
    for (const auto& [key, value] : schema.items()) {
      if (key != "$ref" && !is_one_of(kAnnotations, key)) others[key] = value;
    }
    const std::string text = reference + " " + to_text(others);
    auto [known, is_new] = extensions_.try_emplace(text, format_text("with-%zu", extensions_.size() + 1));
    const std::string name = known->second;
    if (is_new) {
      const Json both = both_of(*document_.resolve(reference), std::move(others));
      DP_TRY(definitions_[name], rewrite(both, {}, path, depth + 1));
    }
    Json out = Json::object();
    out["$ref"] = "#/$defs/" + name;
    return out;
  }

  const Json& root_;
  const Document document_;
  bool is_lenient_ = false, takes_any_ = false;
  size_t count_ = 0;
  std::map<std::string, std::string> extensions_, moved_;  // names of definitions, by what they stand for
  std::map<std::string, Json> definitions_;
};

}  // namespace

Result<Json> rewrite_schema(const Json& schema) { return Rewriter(schema).run(); }

}  // namespace doppler::guidance
