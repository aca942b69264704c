// Python's format(value, spec): "{:>10}", "{:,.2f}", "{:#06x}". Grammar: the format specification mini-language of
// Python's documentation.
#include "tokenizer/template/format_spec.h"

#include <cmath>

#include "tokenizer/template/limits.h"
#include "tokenizer/template/print.h"
#include "tokenizer/template/python_text.h"

namespace doppler::tmpl {
namespace {

struct Spec {
  std::string fill = " ";
  char align = 0, sign = '-', grouping = 0, type = 0;
  bool alternate = false;
  int width = 0, precision = -1;
};

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

Result<int> read_count(Machine& machine, std::string_view& text) {
  int value = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    value = value * 10 + (text[0] - '0');
    text.remove_prefix(1);
    if (value > kMaxFormatWidth)
      return machine.error("a format width is larger than the allowed %d.", kMaxFormatWidth);
  }
  return value;
}

Result<Spec> read_spec(Machine& machine, std::string_view text) {
  Spec spec;
  const std::string shown = printable(text);
  const auto take = [&](char c) {
    if (text.empty() || text[0] != c) return false;
    text.remove_prefix(1);
    return true;
  };
  const size_t fill = text.empty() ? 0 : code_point_at(text, 0).bytes;
  if (fill < text.size() && is_align(text[fill])) {
    spec.fill = text.substr(0, fill);
    spec.align = text[fill];
    text.remove_prefix(fill + 1);
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    text.remove_prefix(1);
  }
  for (const char sign : {'+', '-', ' '}) {
    if (take(sign)) spec.sign = sign;
  }
  spec.alternate = take('#');
  if (!text.empty() && text[0] == '0' && spec.align == 0) {
    spec.fill = "0";
    spec.align = '=';
  }
  DP_TRY(spec.width, read_count(machine, text));
  for (const char mark : {',', '_'}) {
    if (take(mark)) spec.grouping = mark;
  }
  if (take('.')) {
    const size_t before = text.size();
    DP_TRY(spec.precision, read_count(machine, text));
    if (text.size() == before)
      return machine.error("format specification '%s' lacks a precision.", shown.c_str());
  }
  if (!text.empty()) {
    spec.type = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty()) return machine.error("format specification '%s' cannot be read.", shown.c_str());
  return spec;
}

// "1234567" -> "1,234,567".
std::string grouped(const std::string& digits, char mark, size_t every) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % every == 0) out += mark;
    out += digits[i];
  }
  return out;
}

std::string padded(const Spec& spec, const std::string& head, const std::string& body, char usual) {
  const char align = spec.align ? spec.align : usual;
  const size_t size = count_code_points(head) + count_code_points(body);
  const size_t gap = size < static_cast<size_t>(spec.width) ? static_cast<size_t>(spec.width) - size : 0;
  const auto filled = [&](size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i) out += spec.fill;
    return out;
  };
  if (align == '<') return head + body + filled(gap);
  if (align == '^') return filled(gap / 2) + head + body + filled(gap - gap / 2);
  if (align == '=') return head + filled(gap) + body;
  return filled(gap) + head + body;
}

// Zeros before a grouped number are grouped too, as far as the width goes.
std::string number_text(const Spec& spec, bool is_negative, const std::string& prefix, std::string whole,
                        const std::string& rest, size_t every) {
  const std::string head = (is_negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign)) + prefix;
  if (spec.grouping == 0) return padded(spec, head, whole + rest, '>');
  if (spec.fill == "0" && spec.align == '=') {
    while (head.size() + grouped("0" + whole, spec.grouping, every).size() + rest.size() <=
           static_cast<size_t>(spec.width))
      whole.insert(0, 1, '0');
  }
  std::string body = grouped(whole, spec.grouping, every) + rest;
  if (spec.fill == "0" && spec.align == '=' &&
      head.size() + body.size() + 1 == static_cast<size_t>(spec.width))
    body.insert(0, 1, '0');
  return padded(spec, head, body, '>');
}

std::string printed(const std::string& format, int precision, double value) {
  std::string out(2 * kMaxFormatWidth + 400, '\0');  // 309 digits before the point, width and precision
  const int size = std::snprintf(out.data(), out.size(), format.c_str(), precision, value);
  out.resize(static_cast<size_t>(std::max(size, 0)));
  return out;
}

Result<std::string> format_integer(Machine& machine, int64_t value, const Spec& spec) {
  if (spec.precision >= 0) return machine.error("a precision is not allowed in the format of an integer.");
  const bool is_negative = value < 0;
  uint64_t left = is_negative ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  if (spec.type == 'c') {
    if (value < 0 || value > 0x10FFFF) return machine.error("a character's number must be 0 to 0x10ffff.");
    std::string text;
    append_utf8(text, static_cast<uint32_t>(value));
    return padded(spec, "", text, '<');
  }
  const unsigned base = spec.type == 'b' ? 2 : spec.type == 'o' ? 8 : (spec.type | 0x20) == 'x' ? 16 : 10;
  if (base != 10 && spec.grouping == ',') return machine.error("',' cannot group digits of this base.");
  std::string digits;
  do {
    const auto digit = static_cast<char>(left % base);
    digits.insert(digits.begin(),
                  static_cast<char>(digit < 10 ? '0' + digit : (spec.type == 'X' ? 'A' : 'a') + digit - 10));
    left /= base;
  } while (left != 0);
  const std::string prefix = spec.alternate && base != 10 ? std::string("0") + spec.type : "";
  return number_text(spec, is_negative, prefix, std::move(digits), "", base == 10 ? 3 : 4);
}

Result<std::string> format_float(double value, const Spec& spec) {
  char type = spec.type;
  const bool is_percent = type == '%', is_bare = type == 0;
  const double shown = std::abs(is_percent ? value * 100 : value);
  std::string text;
  if (is_bare && spec.precision < 0) {
    text = float_repr(shown);
  } else {
    if (is_percent) type = 'f';
    if (is_bare || type == 'n') type = 'g';
    const int precision = spec.precision < 0 ? 6 : spec.precision;
    text = printed(std::string(spec.alternate ? "%#.*" : "%.*") + type, precision, shown);
    // A number without a type has a digit after its point, unless it has an exponent.
    const bool is_whole = text.find_first_of(".en") == std::string::npos;
    if (is_bare && is_whole) {
      const bool fits = std::isfinite(shown) && static_cast<int>(text.size()) < std::max(precision, 1);
      text = fits ? text + ".0" : printed("%.*e", std::max(precision, 1) - 1, shown);
    }
  }
  if (is_percent) text += '%';
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  return number_text(spec, std::signbit(value), "", text.substr(0, end), text.substr(end), 3);
}

}  // namespace

Result<std::string> format_value(Machine& machine, const Value& value, std::string_view text) {
  std::string shown;
  if (text.empty()) {
    DP_CHECK(append_text(machine, shown, value));
    return shown;
  }
  DP_TRY(const Spec spec, read_spec(machine, text));
  const auto unknown = [&] {
    return machine.error("format specification '%s' is not for a value of type %s.", printable(text).c_str(),
                         value.type_name());
  };
  DP_CHECK(machine.spend_bytes(static_cast<uint64_t>(spec.width) * spec.fill.size()));
  if (value.is(Kind::kText)) {
    if ((spec.type != 0 && spec.type != 's') || spec.align == '=' || spec.sign != '-' || spec.grouping != 0 ||
        spec.alternate)
      return unknown();
    const std::vector<size_t> offsets = code_point_offsets(value.as_text());
    const size_t count = offsets.size() - 1;
    const size_t kept = spec.precision < 0 ? count : std::min(count, static_cast<size_t>(spec.precision));
    return padded(spec, "", value.as_text().substr(0, offsets[kept]), '<');
  }
  if (!value.is_number()) return unknown();
  constexpr std::string_view kIntegers = "bcdoxXn", kFloats = "eEfFgGn%";
  const bool is_float = value.is(Kind::kFloat);
  if (!is_float && (spec.type == 0 || kIntegers.find(spec.type) != std::string_view::npos))
    return format_integer(machine, value.as_int(), spec);
  if ((is_float && spec.type == 0) || kFloats.find(spec.type) != std::string_view::npos)
    return format_float(value.as_double(), spec);
  return unknown();
}

}  // namespace doppler::tmpl
