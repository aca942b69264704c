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

// Cut at a word's end, unless words may be cut; a text that is longer by no more than the leeway stays.
Result<Value> truncate_filter(Machine& m, const Value& self, const Arguments& arguments) {
  const char* what = "filter truncate";
  DP_TRY(const Bound a, bind(m, what, arguments, {"length", "killwords", "end", "leeway"}));
  DP_TRY(const int64_t length, integer_or(m, what, a[0], 255));
  DP_TRY(const std::string_view end, text_or(m, what, a[2], "..."));
  DP_TRY(const int64_t leeway, integer_or(m, what, a[3] && a[3]->is(Kind::kNone) ? nullptr : a[3], 5));
  DP_TRY(const std::string text, to_string(m, self));
  const auto end_length = static_cast<int64_t>(count_code_points(end));
  if (length < end_length) return m.error("%s: its length must be at least that of its end.", what);
  if (leeway < 0) return m.error("%s: its leeway must be at least 0.", what);
  const std::vector<size_t> offsets = code_point_offsets(text);
  const auto size = static_cast<int64_t>(offsets.size()) - 1;
  if (size <= length || size - length <= leeway) return m.text(text);
  std::string_view kept = std::string_view(text).substr(0, offsets[static_cast<size_t>(length - end_length)]);
  if (!truthy_or(a[1], false)) kept = kept.substr(0, kept.rfind(' '));
  return m.text(std::string(kept) + std::string(end));
}

std::string quoted(std::string_view text, bool in_query) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    const bool is_plain = (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') ||
                          std::string_view("_.-~").find(c) != std::string_view::npos;
    if (is_plain || (c == '/' && !in_query))
      out += c;
    else
      out += c == ' ' && in_query ? "+" : format_text("%%%02X", byte);
  }
  return out;
}

// A text for an address; pairs for its query.
Result<Value> urlencode_filter(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "filter urlencode", arguments, {}));
  if (!self.is(Kind::kDict) && !self.is_list_like()) {
    DP_TRY(const std::string text, to_string(m, self));
    return m.text(quoted(text, false));
  }
  std::string out;
  const auto add = [&](const Value& key, const Value& value) -> Result<void> {
    DP_TRY(const std::string name, to_string(m, key));
    DP_TRY(const std::string text, to_string(m, value));
    out += (out.empty() ? "" : "&") + quoted(name, true) + "=" + quoted(text, true);
    return m.spend_bytes(3 * (name.size() + text.size()) + 2);
  };
  if (self.is(Kind::kDict)) {
    for (const auto& [key, value] : self.pairs()) DP_CHECK(add(key, value));
    return Value::text(std::move(out));
  }
  for (const Value& item : self.items()) {
    DP_TRY(const Value pair, iterate(m, item));
    if (pair.items().size() != 2) return m.error("filter urlencode needs pairs of a name and a value.");
    DP_CHECK(add(pair.items()[0], pair.items()[1]));
  }
  return Value::text(std::move(out));
}

constexpr FilterRow kTextFilters[] = {
    {"upper", mapped<to_upper>},     {"lower", mapped<to_lower>},     {"capitalize", mapped<capitalize>},
    {"title", mapped<title>},        {"escape", mapped<escape>},      {"e", mapped<escape>},
    {"safe", mapped<unchanged>},     {"trim", trim_filter},           {"replace", replace_filter},
    {"indent", indent_filter},       {"wordcount", wordcount_filter}, {"format", format_filter},
    {"center", center_filter},       {"truncate", truncate_filter},   {"urlencode", urlencode_filter},
    {"forceescape", mapped<escape>},
};

}  // namespace

std::span<const FilterRow> text_filters() { return kTextFilters; }

}  // namespace doppler::tmpl
