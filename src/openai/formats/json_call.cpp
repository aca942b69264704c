#include "openai/formats/json_call.h"

#include "base/json.h"

namespace doppler::openai {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::optional<std::string> string_of(const std::string& text) {
  const auto value = parse_json(text, "value");
  if (!value || !value->is_string()) return std::nullopt;
  return value->text();
}

}  // namespace

JsonExtent::Step JsonExtent::take(char c) {
  const bool begins = first_ == 0;
  if (begins) first_ = c;
  if (in_string_) {
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (c == '\\') {
      is_escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
      if (depth_ == 0) return Step::kLast;
    }
    return Step::kInside;
  }
  if (c == '"' && (begins || depth_ > 0)) {
    in_string_ = true;
  } else if ((c == '{' || c == '[') && (begins || depth_ > 0)) {
    ++depth_;
  } else if (depth_ > 0) {
    if ((c == '}' || c == ']') && --depth_ == 0) return Step::kLast;
  } else if (is_space(c) || c == ',' || c == '}' || c == ']') {
    return Step::kBehind;
  }
  return Step::kInside;
}

Taken JsonCall::take(char c, AnswerEvents& out) {
  if (at_ == At::kInKey) {
    key_ += c;
    if (extent_.take(c) != JsonExtent::Step::kLast) return Taken::kMore;
    const auto key = string_of(key_);
    if (!key) return Taken::kRefused;
    key_ = *key;
    at_ = At::kColon;
    return Taken::kMore;
  }
  if (at_ == At::kValue && (extent_.has_begun() || !is_space(c))) return take_value(c, out);
  if (is_space(c)) return Taken::kMore;
  switch (at_) {
    case At::kOpening:
      at_ = At::kKey;
      return c == '{' ? Taken::kMore : Taken::kRefused;
    case At::kKey:
      if (c == '}') return finish(out);
      if (c != '"') return Taken::kRefused;
      key_ = c;
      extent_ = {};
      extent_.take(c);
      at_ = At::kInKey;
      return Taken::kMore;
    case At::kColon:
      at_ = At::kValue;
      extent_ = {};
      value_.clear();
      return c == ':' ? Taken::kMore : Taken::kRefused;
    case At::kComma:
      if (c == '}') return finish(out);
      at_ = At::kKey;
      return c == ',' ? Taken::kMore : Taken::kRefused;
    default:
      return Taken::kRefused;
  }
}

Taken JsonCall::take_value(char c, AnswerEvents& out) {
  const JsonExtent::Step step = extent_.take(c);
  // Arguments that are no string go on as they come.
  const bool passes = is_arguments() && extent_.first() == '{';
  if (step != JsonExtent::Step::kBehind) {
    if (passes && has_begun_) {
      out.add(AnswerEvent::Kind::kArguments, std::string_view(&c, 1));
      has_arguments_ = true;
    } else {
      value_ += c;
    }
  }
  if (step == JsonExtent::Step::kInside) return Taken::kMore;
  if (!(passes && has_begun_) && !finish_value(out)) return Taken::kRefused;
  at_ = At::kComma;
  return step == JsonExtent::Step::kBehind ? take(c, out) : Taken::kMore;
}

bool JsonCall::finish_value(AnswerEvents& out) {
  if (key_ == "name" && !has_begun_) {
    const auto name = string_of(value_);
    if (!name || name->empty()) return false;
    out.add(AnswerEvent::Kind::kCall, *name);
    has_begun_ = true;
    has_arguments_ = !arguments_.empty();
    out.add(AnswerEvent::Kind::kArguments, arguments_);
  } else if (is_arguments() && !has_arguments_) {
    // Some models write the arguments' text instead of the arguments.
    const auto text = string_of(value_);
    if (!text && extent_.first() != '{') return value_ == "null";
    arguments_ = text ? *text : value_;
    if (!has_begun_) return true;
    out.add(AnswerEvent::Kind::kArguments, arguments_);
    has_arguments_ = !arguments_.empty();
  }
  return true;
}

Taken JsonCall::finish(AnswerEvents& out) {
  if (!has_begun_) return Taken::kRefused;
  if (!has_arguments_) out.add(AnswerEvent::Kind::kArguments, "{}");
  return Taken::kEnd;
}

}  // namespace doppler::openai
