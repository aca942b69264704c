// Looking filters up, and the filters on numbers and on any value. Text: filters_text.cpp; lists:
// filters_sequence.cpp and filters_selection.cpp.
#include "tokenizer/template/filters.h"

#include <cmath>

#include "tokenizer/template/methods.h"
#include "tokenizer/template/operators.h"
#include "tokenizer/template/print.h"
#include "tokenizer/template/python_text.h"

namespace doppler::tmpl {
namespace {

Result<Value> default_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter default", arguments, {"default_value", "boolean"}));
  const bool missing = self.is(Kind::kUndefined) || (truthy_or(a[1], false) && !self.truthy());
  if (!missing) return self;
  return a[0] ? *a[0] : Value::text("");
}

Result<Value> length_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "filter length", arguments, {}));
  DP_TRY(const int64_t count, length(m, self));
  return Value::integer(count);
}

Result<Value> abs_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "filter abs", arguments, {}));
  if (self.is(Kind::kFloat)) return Value::number(std::abs(self.as_double()));
  if (self.is_integral() && self.as_int() >= 0) return Value::integer(self.as_int());
  return negate(m, self);
}

// Python allows white space around a number and single underscores within it.
std::string number_text(std::string_view text) {
  std::string out;
  const std::string_view trimmed = strip(text, nullptr, true, true);
  for (size_t i = 0; i < trimmed.size(); ++i) {
    const bool between_digits = trimmed[i] == '_' && i > 0 && i + 1 < trimmed.size() && trimmed[i - 1] != '_';
    if (!between_digits && !(i == 0 && trimmed[i] == '+' && trimmed.size() > 1 && trimmed[1] != '-')) {
      out += trimmed[i];
    }
  }
  return out;
}

Result<Value> truncated(Machine& m, double number) {
  if (!(std::abs(number) < 0x1p63)) return m.error("filter int got a number that does not fit 64 bits.");
  return Value::integer(static_cast<int64_t>(number));
}

Result<Value> int_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter int", arguments, {"default", "base"}));
  DP_TRY(const int64_t base, integer_or(m, "filter int", a[1], 10));
  if (self.is(Kind::kUndefined)) return m.undefined_error(self);
  if (self.is_integral()) return Value::integer(self.as_int());
  if (self.is(Kind::kFloat)) return truncated(m, self.as_double());
  if (self.is(Kind::kText)) {
    std::string digits = number_text(self.as_text());
    if (base == 10) {
      if (const auto number = parse_int(digits)) return Value::integer(*number);
      if (const auto number = parse_double(digits); number && std::isfinite(*number))
        return truncated(m, *number);
    } else if (base == 2 || base == 8 || base == 16) {
      const char mark = base == 2 ? 'b' : base == 8 ? 'o' : 'x';
      if (digits.size() > 2 && digits[0] == '0' && (digits[1] | 0x20) == mark) digits.erase(0, 2);
      int64_t number = 0;
      bool good = !digits.empty();
      for (const char c : digits) {
        const int digit = c >= '0' && c <= '9'                     ? c - '0'
                          : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                   : 16;
        good = good && digit < base && !__builtin_mul_overflow(number, base, &number) &&
               !__builtin_add_overflow(number, digit, &number);
      }
      if (good) return Value::integer(number);
    } else {
      return m.error("filter int takes base 2, 8, 10 or 16, not %lld.", static_cast<long long>(base));
    }
  }
  return a[0] ? *a[0] : Value::integer(0);
}

Result<Value> float_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter float", arguments, {"default"}));
  if (self.is(Kind::kUndefined)) return m.undefined_error(self);
  if (self.is_number()) return Value::number(self.as_double());
  if (self.is(Kind::kText)) {
    if (const auto number = parse_double(number_text(self.as_text()))) return Value::number(*number);
  }
  return a[0] ? *a[0] : Value::number(0.0);
}

Result<Value> round_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter round", arguments, {"precision", "method"}));
  DP_TRY(const int64_t precision, integer_or(m, "filter round", a[0], 0));
  DP_TRY(const std::string_view method, text_or(m, "filter round", a[1], "common"));
  constexpr int64_t kMaxPrecision = 15;  // a double has no more decimal digits
  if (precision < 0 || precision > kMaxPrecision) {
    return m.error("filter round takes a precision of 0 to 15, not %lld.", static_cast<long long>(precision));
  }
  if (self.is(Kind::kUndefined)) return m.undefined_error(self);
  if (!self.is_number()) return m.error("filter round needs a number, not %s.", self.type_name());
  if (method == "common") {
    if (self.is_integral()) return Value::integer(self.as_int());
    if (!std::isfinite(self.as_double())) return self;
    // printf rounds the exact binary value, half to even, as Python's round does.
    const std::string rounded = format_text("%.*f", static_cast<int>(precision), self.as_double());
    return Value::number(parse_double(rounded).value_or(self.as_double()));
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return Value::number(std::ceil(self.as_double() * scale) / scale);
  if (method == "floor") return Value::number(std::floor(self.as_double() * scale) / scale);
  return m.error("filter round takes method common, ceil or floor, not '%s'.", printable(method).c_str());
}

Result<Value> string_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "filter string", arguments, {}));
  DP_TRY(std::string text, to_string(m, self));
  return Value::text(std::move(text));
}

Result<Value> tojson_filter(Machine& m, const Value& self, const Arguments& arguments) {
  const char* what = "filter tojson";
  DP_TRY(const Bound a, bind(m, what, arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ensure_ascii = truthy_or(a[0], false);
  style.sort_keys = truthy_or(a[3], false);
  style.pretty = a[1] && !a[1]->is(Kind::kNone);
  if (style.pretty && a[1]->is(Kind::kText)) {
    style.indent = a[1]->as_text();
  } else if (style.pretty) {
    DP_TRY(const int64_t width, integer_or(m, what, a[1], 0));
    if (width > kMaxFormatWidth)
      return m.error("%s: indent %lld is too large.", what, static_cast<long long>(width));
    style.indent.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  style.item_separator = style.pretty ? "," : ", ";
  if (a[2] && !a[2]->is(Kind::kNone)) {
    const bool pair = (a[2]->is(Kind::kTuple) || a[2]->is(Kind::kList)) && a[2]->items().size() == 2;
    if (!pair) return m.error("%s: separators must be two texts.", what);
    DP_TRY(style.item_separator, text_or(m, what, &a[2]->items()[0], ""));
    DP_TRY(style.key_separator, text_or(m, what, &a[2]->items()[1], ""));
  }
  DP_TRY(std::string json, to_json(m, self, style));
  return Value::text(std::move(json));
}

Result<Value> attr_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter attr", arguments, {"name"}, 1));
  DP_TRY(const std::string_view name, text_or(m, "filter attr", a[0], ""));
  if (self.is(Kind::kDict)) {  // attributes only, no items
    DP_TRY(const bool is_method, has_method(m, self, name));
    if (!is_method)
      return Value::undefined(format_text("'dict object' has no attribute '%s'", printable(name).c_str()));
  }
  return get_attribute(m, self, name);
}

constexpr FilterRow kFilters[] = {
    {"default", default_filter}, {"d", default_filter},   {"length", length_filter},
    {"count", length_filter},    {"abs", abs_filter},     {"int", int_filter},
    {"float", float_filter},     {"round", round_filter}, {"string", string_filter},
    {"tojson", tojson_filter},   {"attr", attr_filter},
};

}  // namespace

Filter find_filter(std::string_view name) {
  for (const std::span<const FilterRow> rows :
       {std::span<const FilterRow>(kFilters), text_filters(), sequence_filters(), selection_filters()}) {
    for (const FilterRow& row : rows) {
      if (row.name == name) return row.filter;
    }
  }
  return nullptr;
}

}  // namespace doppler::tmpl
