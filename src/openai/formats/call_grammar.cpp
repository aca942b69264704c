// Calls of tools as grammars, in Lark (docs/howto/grammars.md): each tool's schema is inside.
#include "base/json.h"
#include "openai/formats/formats.h"

namespace doppler::openai {
namespace {

// Blanks in arguments, so few that no model writes for ever.
constexpr const char* kBlanks = R"([\x20\x0A]{1,20})";

std::string lark_text(std::string_view text) { return to_text(Json(std::string(text))); }

std::string schema_rule(Json schema) {
  if (!schema.is_object() || schema.empty()) schema = {{"type", "object"}};
  if (!schema.contains("x-guidance")) schema["x-guidance"] = {{"whitespace_pattern", kBlanks}};
  return "%json " + to_text(schema) + "\n";
}

}  // namespace

Grammar call_grammar(const CallFormat& format, const Json& tools, std::string_view name,
                     const std::string* answer) {
  const bool names = name.empty();
  if (!format.closing || (names && !format.grammar_has_names) || (answer && format.shows_special)) return {};
  std::string start = "start:", rules;
  const auto add = [&](const std::string& rule) { start += (start.ends_with(':') ? " " : " | ") + rule; };
  if (answer) {
    auto schema = parse_json(*answer, "The JSON schema");
    add("answer");
    rules += "answer: " + schema_rule(schema ? std::move(*schema) : Json());
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
    rules += "\narguments" + number + ": " + schema_rule(parameters ? *parameters : Json());
  }
  return {GrammarKind::kGrammar, start + "\n" + rules, "Field \"tools\""};
}

}  // namespace doppler::openai
