#include "openai/formats/python_call.h"

#include <algorithm>
#include <optional>

#include "base/json.h"
#include "base/text.h"

namespace doppler::openai {
namespace {

constexpr int kPythonCallDeepest = 32;
constexpr std::string_view kSameEscapes = "\\\"/bfnrtu";  // in JSON as in Python

// Literals, among them JSON's. No value: the text is none.
class LiteralParser {
 public:
  explicit LiteralParser(std::string_view text) : rest_(text) {}

  // Up to the closing bracket.
  std::optional<Json> arguments() {
    Json out = Json::object();
    while (!eat(')')) {
      const size_t end = std::min(rest_.find('='), rest_.size());
      const std::string key(trim(rest_.substr(0, end)));
      if (end == rest_.size() || key.empty() || key.find_first_of("\"'([{,") != std::string::npos)
        return std::nullopt;
      rest_.remove_prefix(end + 1);
      auto item = value(0);
      if (!item) return std::nullopt;
      out[key] = std::move(*item);
      if (!eat(',') && !rest_.starts_with(')')) return std::nullopt;
    }
    return rest_.empty() ? std::optional(std::move(out)) : std::nullopt;
  }

 private:
  std::optional<Json> value(int depth) {
    if (depth > kPythonCallDeepest) return std::nullopt;
    skip_space();
    if (rest_.starts_with('"') || rest_.starts_with('\'')) return string();
    if (eat('[')) return list(']', depth);
    if (eat('(')) return list(')', depth);
    if (eat('{')) return object(depth);
    const size_t end = std::min(rest_.find_first_of(",)]}:"), rest_.size());
    const std::string_view word = trim(rest_.substr(0, end));
    rest_.remove_prefix(end);
    const std::string_view json = word == "True"    ? "true"
                                  : word == "False" ? "false"
                                  : word == "None"  ? "null"
                                                    : word;
    auto parsed = parse_json(json, "value");
    return parsed ? std::optional(std::move(*parsed)) : std::nullopt;
  }

  std::optional<Json> list(char closing, int depth) {
    Json out = Json::array();
    while (!eat(closing)) {
      auto item = value(depth + 1);
      if (!item) return std::nullopt;
      out.push_back(std::move(*item));
      if (!eat(',') && !rest_.starts_with(closing)) return std::nullopt;
    }
    return out;
  }

  std::optional<Json> object(int depth) {
    Json out = Json::object();
    while (!eat('}')) {
      const auto key = value(depth + 1);
      if (!key || !eat(':')) return std::nullopt;
      auto item = value(depth + 1);
      if (!item) return std::nullopt;
      out[key->is_string() ? key->text() : to_text(*key)] = std::move(*item);
      if (!eat(',') && !rest_.starts_with('}')) return std::nullopt;
    }
    return out;
  }

  // By way of JSON, which has most of the escapes.
  std::optional<Json> string() {
    const char quote = rest_.front();
    std::string json = "\"";
    size_t i = 1;
    for (; i < rest_.size() && rest_[i] != quote; ++i) {
      const char c = rest_[i];
      if (c == '\\' && i + 1 < rest_.size()) {
        const char escaped = rest_[++i];
        if (escaped == 'x') {
          json += "\\u00";
        } else if (escaped == '\'') {
          json += escaped;
        } else {
          json += kSameEscapes.find(escaped) == std::string_view::npos ? "\\\\" : "\\";
          json += escaped;
        }
      } else if (c == '"' || static_cast<unsigned char>(c) < ' ') {
        json += format_text("\\u%04x", static_cast<unsigned>(c));
      } else {
        json += c;
      }
    }
    if (i >= rest_.size()) return std::nullopt;
    rest_.remove_prefix(i + 1);
    auto parsed = parse_json(json + "\"", "value");
    return parsed ? std::optional(std::move(*parsed)) : std::nullopt;
  }

  bool eat(char c) {
    skip_space();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    skip_space();
    return true;
  }
  void skip_space() {
    while (rest_.starts_with(' ') || rest_.starts_with('\n')) rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

}  // namespace

Taken PythonCall::take(char c, AnswerEvents& out) {
  text_ += c;
  if (quote_ != 0) {
    if (is_escaped_ || c == '\\') {
      is_escaped_ = !is_escaped_;
    } else if (c == quote_) {
      quote_ = 0;
    }
  } else if (c == '"' || c == '\'') {
    quote_ = c;
  } else if (c == '(' || c == '[' || c == '{') {
    ++depth_;
  } else if ((c == ')' || c == ']' || c == '}') && --depth_ <= 0) {
    return depth_ == 0 && c == ')' ? finish(out) : Taken::kRefused;
  }
  return Taken::kMore;
}

Taken PythonCall::finish(AnswerEvents& out) const {
  const size_t bracket = text_.find('(');
  const std::string_view name = trim(std::string_view(text_).substr(0, bracket));
  if (name.empty() || name.find_first_of(" \"'[{=") != std::string_view::npos) return Taken::kRefused;
  const auto arguments = LiteralParser(std::string_view(text_).substr(bracket + 1)).arguments();
  if (!arguments) return Taken::kRefused;
  out.add(AnswerEvent::Kind::kCall, name);
  out.add(AnswerEvent::Kind::kArguments, to_text(*arguments));
  return Taken::kEnd;
}

std::string python_call(const Json& function) {
  std::string arguments;
  if (const Json* given = find(function, "arguments"); given && given->is_object()) {
    for (const auto& [key, value] : given->items()) {
      const std::string text = value.is_boolean() ? (value == true ? "True" : "False")
                               : value.is_null()  ? "None"
                                                  : to_text(value);
      arguments += (arguments.empty() ? "" : ", ") + key + "=" + text;
    }
  }
  const auto name = get_string(function, "name");
  return (name ? name->value_or("") : "") + "(" + arguments + ")";
}

}  // namespace doppler::openai
