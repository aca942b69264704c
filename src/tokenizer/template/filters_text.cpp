// Filters that treat their value as text; anything else is printed first, as jinja2 does.
#include <algorithm>

#include "tokenizer/template/filters.h"
#include "tokenizer/template/methods.h"
#include "tokenizer/template/operators.h"
#include "tokenizer/template/print.h"
#include "tokenizer/template/python_text.h"

namespace doppler::tmpl {
namespace {

template <std::string (*kMap)(std::string_view)>
Result<Value> mapped(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "this filter", arguments, {}));
  DP_TRY(const std::string text, to_string(m, self));
  return m.text(kMap(text));
}

// jinja2's own title: a word starts after white space, -, (, {, [ or <.
std::string title(std::string_view text) {
  std::string out;
  bool at_start = true;
  for (size_t i = 0; i < text.size();) {
    const uint32_t bytes = code_point_at(text, i).bytes;
    const std::string_view piece = text.substr(i, bytes);
    const uint32_t c = code_point_at(text, i).value;
    out += at_start ? to_upper(piece) : to_lower(piece);
    at_start = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    i += bytes;
  }
  return out;
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&#34;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += c;
  }
  return out;
}

std::string unchanged(std::string_view text) { return std::string(text); }

Result<Value> trim_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter trim", arguments, {"chars"}));
  DP_TRY(const std::string text, to_string(m, self));
  if (!a[0] || a[0]->is(Kind::kNone)) return m.text(std::string(strip(text, nullptr, true, true)));
  DP_TRY(const std::string_view chars, text_or(m, "filter trim", a[0], ""));
  DP_CHECK(m.spend(text.size() * (1 + chars.size()) / kBytesPerStep));
  return m.text(std::string(strip(text, &chars, true, true)));
}

Result<Value> replace_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter replace", arguments, {"old", "new", "count"}, 2));
  DP_TRY(const std::string text, to_string(m, self));
  DP_TRY(const std::string old, to_string(m, *a[0]));
  DP_TRY(const std::string with, to_string(m, *a[1]));
  const bool all = !a[2] || a[2]->is(Kind::kNone);
  DP_TRY(const int64_t count, integer_or(m, "filter replace", all ? nullptr : a[2], -1));
  return replace_text(m, text, old, with, count);
}

Result<Value> indent_filter(Machine& m, const Value& self, const Arguments& arguments) {
  const char* what = "filter indent";
  DP_TRY(const Bound a, bind(m, what, arguments, {"width", "first", "blank"}));
  std::string indention(4, ' ');
  if (a[0] && a[0]->is(Kind::kText)) {
    indention = a[0]->as_text();
  } else if (a[0]) {
    DP_TRY(const int64_t width, integer_or(m, what, a[0], 4));
    if (width > kMaxFormatWidth)
      return m.error("%s: width %lld is too large.", what, static_cast<long long>(width));
    indention.assign(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  }
  const bool blank = truthy_or(a[2], false);
  DP_TRY(std::string text, to_string(m, self));
  text += '\n';  // so that a last empty line counts as one
  std::string out = truthy_or(a[1], false) ? indention : "";
  const std::vector<std::string_view> lines = split_lines(text);
  for (size_t i = 0; i < lines.size(); ++i) {
    DP_CHECK(m.spend_bytes(lines[i].size() + indention.size() + 1));
    if (i > 0) out += '\n';
    if (i > 0 && (blank || !lines[i].empty())) out += indention;
    out += lines[i];
  }
  return Value::text(std::move(out));
}

Result<Value> wordcount_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "filter wordcount", arguments, {}));
  DP_TRY(const std::string text, to_string(m, self));
  int64_t words = 0;
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    const bool part =
        is_letter(point.value) || (point.value >= '0' && point.value <= '9') || point.value == '_';
    words += part && !in_word ? 1 : 0;
    in_word = part;
    i += point.bytes;
  }
  return Value::integer(words);
}

Result<Value> format_filter(Machine& m, const Value& self, const Arguments& arguments) {
  if (!arguments.named.empty()) return m.error("filter format takes no named arguments.");
  DP_TRY(const std::string pattern, to_string(m, self));
  DP_TRY(const Value values, m.list(arguments.positional, Kind::kTuple));
  return format_percent(m, pattern, values);
}

Result<Value> center_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "filter center", arguments, {"width"}));
  DP_TRY(const int64_t width, integer_or(m, "filter center", a[0], 80));
  if (width > kMaxFormatWidth)
    return m.error("filter center: width %lld is too large.", static_cast<long long>(width));
  DP_TRY(const std::string text, to_string(m, self));
  const int64_t gap = std::max<int64_t>(width - static_cast<int64_t>(count_code_points(text)), 0);
  const int64_t left = gap / 2 + (gap & width & 1);
  return m.text(std::string(static_cast<size_t>(left), ' ') + text +
                std::string(static_cast<size_t>(gap - left), ' '));
}

constexpr FilterRow kFilters[] = {
    {"upper", mapped<to_upper>}, {"lower", mapped<to_lower>},     {"capitalize", mapped<capitalize>},
    {"title", mapped<title>},    {"escape", mapped<escape>},      {"e", mapped<escape>},
    {"safe", mapped<unchanged>}, {"trim", trim_filter},           {"replace", replace_filter},
    {"indent", indent_filter},   {"wordcount", wordcount_filter}, {"format", format_filter},
    {"center", center_filter},
};

}  // namespace

std::span<const FilterRow> text_filters() { return kFilters; }

}  // namespace doppler::tmpl
