// Schemas within Lark grammars: "%json {...}".
#include "guidance/schema/rewrite.h"

namespace doppler::guidance {
namespace {

// The place after a text in quotes that begins at `at`. A pattern has '/' for a quote.
size_t end_of_quoted(std::string_view text, size_t at) {
  const char quote = text[at];
  for (++at; at < text.size() && text[at] != quote && text[at] != '\n'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

size_t end_of_object(std::string_view text, size_t at) {
  int depth = 0;
  while (at < text.size()) {
    if (text[at] == '"') {
      at = end_of_quoted(text, at);
      continue;
    }
    depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
    ++at;
    if (depth == 0) return at;
  }
  return std::string_view::npos;
}

}  // namespace

Result<std::string> rewrite_embedded_schemas(std::string_view lark) {
  constexpr std::string_view kMark = "%json";
  std::string out;
  size_t at = 0;
  while (at < lark.size()) {
    size_t end = at + 1;
    if (lark.substr(at).starts_with("//")) {
      end = std::min(lark.find('\n', at), lark.size());
    } else if (lark[at] == '"' || lark[at] == '/') {
      end = end_of_quoted(lark, at);
    } else if (lark.substr(at).starts_with(kMark)) {
      const size_t open = lark.find_first_not_of(" \t\r\n", at + kMark.size());
      const size_t close = open < lark.size() && lark[open] == '{' ? end_of_object(lark, open) : lark.npos;
      auto schema = close == lark.npos ? Result<Json>(Json())
                                       : parse_json(lark.substr(open, close - open), "The JSON schema");
      if (schema && schema->is_object()) {  // else the library says what is wrong
        DP_TRY(Json said, rewrite_schema(*schema));
        if (said == Json(false))
          return fail(ErrorKind::kInvalidInput, "A JSON schema in the grammar allows nothing.");
        if (said.is_boolean()) said = Json::object();
        out += std::string(kMark) + " " + to_text(said);
        at = close;
        continue;
      }
    }
    out += lark.substr(at, end - at);
    at = end;
  }
  return out;
}

}  // namespace doppler::guidance
