#include "openai/grammar_fields.h"

#include <algorithm>
#include <iterator>

#include "base/json.h"
#include "base/text.h"

namespace doppler::openai {
namespace {

constexpr const char* kAnyObject = R"({"type": "object"})";

constexpr const char* kBlanks = "json_blanks";  // only this server has it

enum class Shape : uint8_t { kSchema, kRegex, kGrammar, kChoice, kFormat, kStructured };
struct Field {
  const char* name;
  Shape shape;
};
constexpr Field kFields[] = {
    {"response_format", Shape::kFormat}, {"grammar", Shape::kGrammar},
    {"json_schema", Shape::kSchema},     {"guided_json", Shape::kSchema},
    {"guided_regex", Shape::kRegex},     {"guided_grammar", Shape::kGrammar},
    {"guided_choice", Shape::kChoice},   {"structured_outputs", Shape::kStructured},
};
// The fields of structured_outputs.
constexpr Field kParts[] = {{"json", Shape::kSchema},
                            {"regex", Shape::kRegex},
                            {"grammar", Shape::kGrammar},
                            {"choice", Shape::kChoice}};

bool is_nothing(const Json& value) {
  return value.is_null() || value == Json("") || (value.is_structured() && value.empty());
}

Unexpected wrong(const char* field, const char* wanted, const Json& given) {
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be %s, but it is %s.", field, wanted,
              printable(to_text(given)).c_str());
}

Result<Grammar> read_schema(const char* field, const Json& value) {
  // vLLM takes it as a text too.
  if (value.is_string()) return Grammar{GrammarKind::kJsonSchema, value.text(), {}};
  if (!value.is_object() && !value.is_boolean()) return wrong(field, "a JSON schema", value);
  return Grammar{GrammarKind::kJsonSchema, to_text(value), {}};
}

// {"type": "json_schema", "json_schema": {"schema": {...}}}. A schema is always kept to, strict or not.
Result<Grammar> read_format(const char* field, const Json& value) {
  DP_TRY(const auto type, get_string(value, "type"));
  if (type == "text") return Grammar();
  const Json* schema = find(value, "schema");  // llama.cpp has it there
  if (type == "json_schema") {
    if (const Json* inner = find(value, "json_schema")) schema = find(*inner, "schema");
    if (!schema) return wrong(field, "of a schema, {\"json_schema\": {\"schema\": ...}}", value);
  } else if (type != "json_object") {
    return fail(ErrorKind::kInvalidInput,
                "Field \"%s\" is of type \"%s\"; allowed are text, json_object and json_schema.", field,
                printable(type.value_or("")).c_str());
  }
  if (!schema) return Grammar{GrammarKind::kJsonSchema, kAnyObject, {}};
  return read_schema(field, *schema);
}

Result<Grammar> read_structured(const char* field, const Json& value);

Result<Grammar> read_field(const Field& field, const Json& value) {
  switch (field.shape) {
    case Shape::kSchema:
      return read_schema(field.name, value);
    case Shape::kFormat:
      return read_format(field.name, value);
    case Shape::kStructured:
      return read_structured(field.name, value);
    case Shape::kChoice: {
      const bool is_texts =
          value.is_array() && std::ranges::all_of(value, [](const Json& item) { return item.is_string(); });
      if (!is_texts) return wrong(field.name, "a list of texts", value);
      return Grammar{GrammarKind::kRegex, regex_of_choices(value), {}};
    }
    case Shape::kRegex:
    case Shape::kGrammar:
      if (!value.is_string()) return wrong(field.name, "a text", value);
      return Grammar{
          field.shape == Shape::kRegex ? GrammarKind::kRegex : GrammarKind::kGrammar, value.text(), {}};
  }
  return Grammar();
}

Result<Grammar> read_structured(const char* field, const Json& value) {
  if (!value.is_object()) return wrong(field, "an object", value);
  for (const auto& [name, item] : value.items()) {
    if (is_nothing(item) || item == Json(false)) continue;
    if (name == "disable_any_whitespace") continue;  // already so, unless the request wants blanks
    if (name == "json_object") return Grammar{GrammarKind::kJsonSchema, kAnyObject, {}};
    const auto part = std::ranges::find(kParts, name, &Field::name);
    if (part != std::end(kParts)) return read_field({field, part->shape}, item);
    return fail(ErrorKind::kUnsupported,
                "Field \"%s\" has \"%s\"; allowed are json, json_object, regex, choice and grammar.", field,
                printable(name).c_str());
  }
  return Grammar();
}

}  // namespace

bool is_grammar_field(std::string_view name) {
  return name == kBlanks || std::ranges::find(kFields, name, &Field::name) != std::end(kFields);
}

Result<void> read_grammar(const Json& body, Grammar* out) {
  DP_TRY(const auto blanks, get_bool(body, kBlanks));
  if (blanks) out->json_blanks = *blanks;
  const char* before = nullptr;
  for (const Field& field : kFields) {
    const Json* value = find(body, field.name);
    if (!value || is_nothing(*value)) continue;
    DP_TRY(Grammar read, read_field(field, *value));
    if (read.kind == GrammarKind::kNone) continue;
    if (before) {
      return fail(ErrorKind::kInvalidInput, "Field \"%s\" is given beside \"%s\"; an answer has one grammar.",
                  field.name, before);
    }
    before = field.name;
    read.source = format_text("Field \"%s\"", field.name);
    read.json_blanks = out->json_blanks;
    *out = std::move(read);
  }
  return {};
}

std::string regex_of_choices(const Json& texts) {
  std::string out;
  for (const Json& text : texts) {
    if (!out.empty()) out += '|';
    for (const char c : text.text()) {
      // Signs with a meaning in a regular expression are ASCII and no letters.
      const bool is_sign = static_cast<uint8_t>(c) < 0x80 && std::isalnum(static_cast<uint8_t>(c)) == 0;
      out += is_sign ? format_text("\\x{%X}", c) : std::string(1, c);
    }
  }
  return out;
}

}  // namespace doppler::openai
