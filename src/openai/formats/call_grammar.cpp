// Calls of tools as grammars, in Lark (docs/howto/grammars.md): each tool's schema is inside.
#include <algorithm>

#include "base/json.h"
#include "openai/formats/formats.h"

namespace doppler::openai {
namespace {

// Blanks in arguments, so few that no model writes for ever.
constexpr const char* kBlankRule = R"([\x20\x0A]{1,20})";

std::string lark_text(std::string_view text) { return to_text(Json(std::string(text))); }

// The schema of a tool's arguments. If the tool's own schema names no arguments, the object stays empty, since models
// would invent some.
Json arguments_schema(const Json* parameters) {
  constexpr const char* kNaming[] = {"properties",
                                     "patternProperties",
                                     "additionalProperties",
                                     "required",
                                     "$ref",
                                     "allOf",
                                     "anyOf",
                                     "oneOf",
                                     "enum",
                                     "const",
                                     "minProperties"};
  const auto names_some = [&](const char* key) {
    const Json* value = find(*parameters, key);
    return value && !value->is_null() && !(value->is_structured() && value->empty());
  };
  const Json* type = parameters && parameters->is_object() ? find(*parameters, "type") : nullptr;
  const bool is_other = type && *type != "object";
  if (parameters && parameters->is_object() && (is_other || std::ranges::any_of(kNaming, names_some)))
    return *parameters;
  return {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
}

std::string schema_rule(Json schema, bool blanks) {
  if (!schema.is_object()) schema = Json::object();
  Json options = schema.contains("x-guidance") ? schema["x-guidance"] : Json::object();
  if (options.is_object() && !options.contains("whitespace_pattern") &&
      !options.contains("whitespace_flexible")) {
    if (blanks) {
      options["whitespace_pattern"] = kBlankRule;
    } else {
      options["whitespace_flexible"] = false;
    }
    schema["x-guidance"] = std::move(options);
  }
  return "%json " + to_text(schema) + "\n";
}

}  // namespace

Grammar call_grammar(const CallFormat& format, const Json& tools, const CallGrammarUse& use) {
  const auto& [name, answer, blanks] = use;
  const bool names = name.empty();
  if (!format.closing || (names && !format.grammar_has_names) || (answer && format.shows_special)) return {};
  std::string start = "start:", rules;
  const auto add = [&](const std::string& rule) { start += (start.ends_with(':') ? " " : " | ") + rule; };
  if (answer) {
    auto schema = parse_json(*answer, "The JSON schema");
    add("answer");
    rules += "answer: " + schema_rule(schema ? std::move(*schema) : Json(), blanks);
  }
  uint32_t count = 0;
  for (const Json& tool : tools) {
    const Json* function = find(tool, "function");
    const Json* parameters = function ? find(*function, "parameters") : nullptr;
    const auto own = get_string(function ? *function : Json(), "name");
    const std::string own_name = own ? own->value_or("") : "";
    if (!names && own_name != name) continue;
    const std::string number = std::to_string(count++);
    add("call" + number);
    rules += "call" + number + ":";
    if (names)
      rules +=
          " " + lark_text((answer ? format.forced("") : "") + own_name + std::string(format.behind_name));
    rules += " arguments" + number;
    if (*format.closing != 0) rules += " " + lark_text(format.closing);
    rules += "\narguments" + number + ": " + schema_rule(arguments_schema(parameters), blanks);
  }
  return {GrammarKind::kGrammar, start + "\n" + rules, "Field \"tools\""};
}

}  // namespace doppler::openai
