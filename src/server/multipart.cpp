#include "server/multipart.h"

#include "base/text.h"

namespace doppler::server {
namespace {

constexpr size_t kMostBoundaryBytes = 70;  // RFC 2046, 5.1.1

// The parameter of "form-data; name="a"; filename="b"", or no value. In quotes a backslash stands for what follows it.
std::optional<std::string> parameter(std::string_view field, std::string_view wanted) {
  size_t at = field.find(';');
  while (at != std::string_view::npos) {
    field.remove_prefix(at + 1);
    const size_t equals = field.find_first_of("=;");
    if (equals == std::string_view::npos) return std::nullopt;
    at = equals;
    if (field[equals] == ';') continue;
    const std::string key = ascii_lower(trim(field.substr(0, equals)));
    field.remove_prefix(equals + 1);
    std::string value;
    if (field.starts_with('"')) {
      size_t i = 1;
      for (; i < field.size() && field[i] != '"'; ++i) {
        if (field[i] == '\\' && i + 1 < field.size()) ++i;
        value += field[i];
      }
      if (i == field.size()) return std::nullopt;
      field.remove_prefix(i + 1);
      at = field.find(';');
    } else {
      at = field.find(';');
      value = trim(field.substr(0, at));
    }
    if (key == wanted) return value;
  }
  return std::nullopt;
}

Unexpected malformed(const char* what) {
  return fail(ErrorKind::kInvalidInput, "The form in the body is malformed: %s.", what);
}

// The head of a part: its fields.
Result<FormPart> read_part_head(std::string_view head) {
  FormPart part;
  bool is_named = false;
  while (!head.empty()) {
    const size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    head = end == std::string_view::npos ? std::string_view() : head.substr(end + 2);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return malformed("a part's field has no colon");
    const std::string name = ascii_lower(trim(line.substr(0, colon)));
    const std::string_view value = trim(line.substr(colon + 1));
    if (name == "content-transfer-encoding" && ascii_lower(value) != "binary" &&
        ascii_lower(value) != "8bit" && ascii_lower(value) != "7bit") {
      return malformed("a part is encoded");
    }
    if (name != "content-disposition") continue;
    const auto of_part = parameter(value, "name");
    if (!of_part) return malformed("a part has no name");
    part.name = *of_part;
    part.filename = parameter(value, "filename").value_or("");
    is_named = true;
  }
  if (!is_named) return malformed("a part has no name");
  return part;
}

}  // namespace

Result<std::vector<FormPart>> read_form(std::string_view content_type, std::string_view body) {
  if (!ascii_lower(content_type).starts_with("multipart/form-data")) {
    return fail(ErrorKind::kInvalidInput, "The body is \"%s\"; allowed is multipart/form-data.",
                printable(content_type).c_str());
  }
  const auto boundary = parameter(content_type, "boundary");
  if (!boundary || boundary->empty() || boundary->size() > kMostBoundaryBytes)
    return malformed("its boundary is missing or too long");
  const std::string opening = "--" + *boundary, between = "\r\n" + opening;
  std::vector<FormPart> parts;
  // The text before the first boundary is no part.
  size_t at = body.starts_with(opening) ? opening.size() : body.find(between);
  if (at == std::string_view::npos) return malformed("its boundary is not in it");
  if (!body.starts_with(opening)) at += between.size();
  while (true) {
    std::string_view rest = body.substr(at);
    if (rest.starts_with("--")) return parts;
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    if (!rest.starts_with("\r\n")) return malformed("a boundary is not the end of its line");
    // The blank line may follow at once: a part without fields, which then has no name.
    const size_t head_end = rest.find("\r\n\r\n");
    const size_t end = rest.find(between, head_end == std::string_view::npos ? 0 : head_end + 2);
    if (head_end == std::string_view::npos || end == std::string_view::npos)
      return malformed("it is cut off");
    if (parts.size() == kMostFormParts) return malformed("it has too many parts");
    DP_TRY(FormPart part, read_part_head(rest.substr(2, head_end < 2 ? 0 : head_end - 2)));
    const size_t begin = head_end + 4;
    part.content = end < begin ? std::string_view() : rest.substr(begin, end - begin);
    parts.push_back(std::move(part));
    at = static_cast<size_t>(rest.data() - body.data()) + end + between.size();
  }
}

std::optional<std::string> query_value(std::string_view query, std::string_view key) {
  for (const std::string& pair : split(query, '&')) {
    const size_t equals = pair.find('=');
    if (std::string_view(pair).substr(0, equals) != key) continue;
    return equals == std::string::npos ? std::string()
                                       : decode_percent(std::string_view(pair).substr(equals + 1));
  }
  return std::nullopt;
}

}  // namespace doppler::server
