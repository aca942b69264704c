// Methods of str: one row each in kMethods. Offsets given to and taken from templates count code points.
#include <algorithm>
#include <optional>

#include "tokenizer/template/methods.h"
#include "tokenizer/template/operators.h"
#include "tokenizer/template/print.h"
#include "tokenizer/template/python_text.h"

namespace doppler::tmpl {
namespace {

template <std::string (*kMap)(std::string_view)>
Result<Value> method_mapped(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "this str method", arguments, {}));
  return m.text(kMap(self.as_text()));
}

template <bool kLeft, bool kRight>
Result<Value> stripped(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "strip()", arguments, {"chars"}));
  if (!a[0] || a[0]->is(Kind::kNone))
    return m.text(std::string(strip(self.as_text(), nullptr, kLeft, kRight)));
  DP_TRY(const std::string_view chars, text_or(m, "strip()", a[0], ""));
  DP_CHECK(m.spend(self.as_text().size() * (1 + chars.size()) / kBytesPerStep));
  return m.text(std::string(strip(self.as_text(), &chars, kLeft, kRight)));
}

template <bool kStart>
Result<Value> remove_affix(Machine& m, const Value& self, const Arguments& arguments) {
  const char* what = kStart ? "removeprefix()" : "removesuffix()";
  DP_TRY(const Bound a, bind(m, what, arguments, {"affix"}, 1));
  DP_TRY(const std::string_view affix, text_or(m, what, a[0], ""));
  std::string_view text = self.as_text();
  if (kStart && text.starts_with(affix)) text.remove_prefix(affix.size());
  if (!kStart && text.ends_with(affix)) text.remove_suffix(affix.size());
  return m.text(std::string(text));
}

Result<Value> text_list(Machine& m, const std::vector<std::string_view>& parts) {
  Values items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) {
    DP_CHECK(m.spend_bytes(sizeof(std::string)));
    DP_TRY(Value item, m.text(std::string(part)));
    items.push_back(std::move(item));
  }
  return m.list(std::move(items));
}

// Words between white space; past `limit` splits the rest stays one part, with its outer white space.
std::vector<std::string_view> split_at_spaces(std::string_view text, int64_t limit, bool from_right) {
  std::vector<std::pair<size_t, size_t>> words;  // begin, end
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    const bool space = is_space(point.value);
    if (!space && !in_word) words.emplace_back(i, i);
    i += point.bytes;
    if (!space) words.back().second = i;
    in_word = !space;
  }
  const size_t cuts = limit < 0 ? words.size() : std::min(words.size(), static_cast<size_t>(limit));
  const size_t rest = words.size() - cuts;  // words that stay together
  std::vector<std::string_view> parts;
  if (from_right && rest > 0) parts.push_back(text.substr(0, words[rest - 1].second));
  for (size_t i = from_right ? rest : 0; i < (from_right ? words.size() : cuts); ++i) {
    parts.push_back(text.substr(words[i].first, words[i].second - words[i].first));
  }
  if (!from_right && rest > 0) parts.push_back(text.substr(words[cuts].first));
  return parts;
}

template <bool kRight>
Result<Value> split_text(Machine& m, const Value& self, const Arguments& arguments) {
  const char* what = kRight ? "rsplit()" : "split()";
  DP_TRY(const Bound a, bind(m, what, arguments, {"sep", "maxsplit"}));
  DP_TRY(const int64_t limit, integer_or(m, what, a[1], -1));
  std::string_view text = self.as_text();
  DP_CHECK(m.spend(1 + text.size() / kBytesPerStep));
  if (!a[0] || a[0]->is(Kind::kNone)) return text_list(m, split_at_spaces(text, limit, kRight));
  DP_TRY(const std::string_view separator, text_or(m, what, a[0], ""));
  if (separator.empty()) return m.error("%s needs a separator that is not empty.", what);
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at = kRight ? text.rfind(separator) : text.find(separator);
    if (at == text.npos) break;
    DP_CHECK(m.spend(1));
    parts.push_back(kRight ? text.substr(at + separator.size()) : text.substr(0, at));
    text = kRight ? text.substr(0, at) : text.substr(at + separator.size());
  }
  parts.push_back(text);
  if (kRight) std::reverse(parts.begin(), parts.end());
  return text_list(m, parts);
}

template <bool kLast>
Result<Value> partition(Machine& m, const Value& self, const Arguments& arguments) {
  const char* what = kLast ? "rpartition()" : "partition()";
  DP_TRY(const Bound a, bind(m, what, arguments, {"sep"}, 1));
  DP_TRY(const std::string_view separator, text_or(m, what, a[0], ""));
  if (separator.empty()) return m.error("%s needs a separator that is not empty.", what);
  const std::string& text = self.as_text();
  const size_t at = kLast ? text.rfind(separator) : text.find(separator);
  DP_CHECK(m.spend_bytes(text.size()));
  if (at == std::string::npos) {
    const Value none = Value::text("");
    return m.list(kLast ? Values{none, none, self} : Values{self, none, none}, Kind::kTuple);
  }
  return m.list({Value::text(text.substr(0, at)), *a[0], Value::text(text.substr(at + separator.size()))},
                Kind::kTuple);
}

Result<Value> lines(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "splitlines()", arguments, {}));
  return text_list(m, split_lines(self.as_text()));
}

Result<Value> replaced(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "replace()", arguments, {"old", "new", "count"}, 2));
  DP_TRY(const std::string_view old, text_or(m, "replace()", a[0], ""));
  DP_TRY(const std::string_view with, text_or(m, "replace()", a[1], ""));
  DP_TRY(const int64_t count, integer_or(m, "replace()", a[2], -1));
  return replace_text(m, self.as_text(), old, with, count);
}

// The part of a text between two code points, as Python's slices count them, and the number of code points before it.
// Nothing: the part begins past the end, where Python does not even find the empty text.
struct TextPart {
  std::string_view text;
  int64_t before = 0;
};
Result<std::optional<TextPart>> part_of(Machine& m, const char* what, std::string_view text,
                                        const Value* start, const Value* end) {
  DP_CHECK(m.spend(1 + text.size() / kBytesPerStep));
  const auto is_given = [](const Value* bound) { return bound && !bound->is(Kind::kNone); };
  if (!is_given(start) && !is_given(end)) return TextPart{text};
  const std::vector<size_t> offsets = code_point_offsets(text);
  const auto size = static_cast<int64_t>(offsets.size()) - 1;
  int64_t bounds[] = {0, size};
  for (size_t i = 0; i < 2; ++i) {
    const Value* bound = i == 0 ? start : end;
    if (!is_given(bound)) continue;
    DP_TRY(bounds[i], integer_or(m, what, bound, 0));
    if (bounds[i] < 0) bounds[i] = std::max<int64_t>(bounds[i] + size, 0);
  }
  bounds[1] = std::min(bounds[1], size);
  if (bounds[0] > size || bounds[0] > bounds[1]) return std::optional<TextPart>();
  const size_t first = offsets[static_cast<size_t>(bounds[0])],
               last = offsets[static_cast<size_t>(bounds[1])];
  return TextPart{text.substr(first, last - first), bounds[0]};
}

// A tuple asks for any of its texts.
template <bool kStart>
Result<Value> starts_or_ends(Machine& m, const Value& self, const Arguments& arguments) {
  const char* what = kStart ? "startswith()" : "endswith()";
  DP_TRY(const Bound a, bind(m, what, arguments, {"prefix", "start", "end"}, 1));
  DP_TRY(const std::optional<TextPart> where, part_of(m, what, self.as_text(), a[1], a[2]));
  if (!where) return Value::boolean(false);
  const std::string_view text = where->text;
  const Values one = {*a[0]};
  for (const Value& affix : a[0]->is(Kind::kTuple) ? a[0]->items() : one) {
    DP_TRY(const std::string_view wanted, text_or(m, what, &affix, ""));
    DP_CHECK(m.spend(1 + wanted.size() / kBytesPerStep));
    if (kStart ? text.starts_with(wanted) : text.ends_with(wanted)) return Value::boolean(true);
  }
  return Value::boolean(false);
}

// Returns what find() or index() returns; for a missing text, find() gives -1 and index() an error.
template <bool kLast, bool kMust>
Result<Value> found(Machine& m, const Value& self, const Arguments& arguments) {
  const char* what = kMust ? (kLast ? "rindex()" : "index()") : kLast ? "rfind()" : "find()";
  DP_TRY(const Bound a, bind(m, what, arguments, {"sub", "start", "end"}, 1));
  DP_TRY(const std::string_view wanted, text_or(m, what, a[0], ""));
  DP_TRY(const std::optional<TextPart> part, part_of(m, what, self.as_text(), a[1], a[2]));
  const size_t at = !part   ? std::string_view::npos
                    : kLast ? part->text.rfind(wanted)
                            : part->text.find(wanted);
  if (at == std::string_view::npos) {
    return kMust ? Result<Value>(m.error("%s did not find the text.", what)) : Value::integer(-1);
  }
  return Value::integer(part->before + static_cast<int64_t>(count_code_points(part->text.substr(0, at))));
}

Result<Value> counted(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "count()", arguments, {"sub", "start", "end"}, 1));
  DP_TRY(const std::string_view wanted, text_or(m, "count()", a[0], ""));
  DP_TRY(const std::optional<TextPart> part, part_of(m, "count()", self.as_text(), a[1], a[2]));
  if (!part) return Value::integer(0);
  const std::string_view text = part->text;
  if (wanted.empty()) return Value::integer(static_cast<int64_t>(count_code_points(text)) + 1);
  int64_t count = 0;
  for (size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + wanted.size())) ++count;
  return Value::integer(count);
}

Result<Value> joined(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "join()", arguments, {"items"}, 1));
  DP_TRY(const Value list, iterate(m, *a[0]));
  std::string out;
  for (size_t i = 0; i < list.items().size(); ++i) {
    DP_TRY(const std::string_view part, text_or(m, "join()", &list.items()[i], ""));
    DP_CHECK(m.spend_bytes(self.as_text().size() + part.size()));
    if (i > 0) out += self.as_text();
    out += part;
  }
  return Value::text(std::move(out));
}

template <bool (*kTest)(uint32_t)>
Result<Value> all_are(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "this str method", arguments, {}));
  const std::string& text = self.as_text();
  DP_CHECK(m.spend(1 + text.size() / kBytesPerStep));
  for (size_t i = 0; i < text.size(); i += code_point_at(text, i).bytes) {
    if (!kTest(code_point_at(text, i).value)) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

// At least one letter of the wanted case and none of the other.
template <bool kUpper>
Result<Value> case_is(Machine& m, const Value& self, const Arguments& arguments) {
  DP_CHECK(bind(m, "this str method", arguments, {}));
  const std::string& text = self.as_text();
  DP_CHECK(m.spend(1 + text.size() / kBytesPerStep));
  bool any = false;
  for (size_t i = 0; i < text.size(); i += code_point_at(text, i).bytes) {
    const uint32_t c = code_point_at(text, i).value;
    if (kUpper ? is_lower(c) : is_upper(c)) return Value::boolean(false);
    any = any || (kUpper ? is_upper(c) : is_lower(c));
  }
  return Value::boolean(any);
}

bool is_digit(uint32_t c) { return c >= '0' && c <= '9'; }
bool is_alphanumeric(uint32_t c) { return is_digit(c) || is_letter(c); }

// The least width that a text is filled up to, with `fill` before and after it.
enum class Side { kLeft, kRight, kBoth };
template <Side kText>
Result<Value> justified(Machine& m, const Value& self, const Arguments& arguments) {
  const char* what = kText == Side::kLeft ? "ljust()" : kText == Side::kRight ? "rjust()" : "center()";
  DP_TRY(const Bound a, bind(m, what, arguments, {"width", "fillchar"}, 1));
  DP_TRY(const int64_t width, integer_or(m, what, a[0], 0));
  DP_TRY(const std::string_view fill, text_or(m, what, a[1], " "));
  if (width > kMaxFormatWidth)
    return m.error("%s: width %lld is too large.", what, static_cast<long long>(width));
  if (count_code_points(fill) != 1) return m.error("%s needs one character to fill with.", what);
  const int64_t gap = std::max<int64_t>(width - static_cast<int64_t>(count_code_points(self.as_text())), 0);
  const int64_t left = kText == Side::kLeft ? 0 : kText == Side::kRight ? gap : gap / 2 + (gap & width & 1);
  std::string before, behind;
  for (int64_t i = 0; i < gap; ++i) (i < left ? before : behind) += fill;
  return m.text(before + self.as_text() + behind);
}

Result<Value> zero_filled(Machine& m, const Value& self, const Arguments& arguments) {
  DP_TRY(const Bound a, bind(m, "zfill()", arguments, {"width"}, 1));
  DP_TRY(const int64_t width, integer_or(m, "zfill()", a[0], 0));
  if (width > kMaxFormatWidth)
    return m.error("zfill(): width %lld is too large.", static_cast<long long>(width));
  std::string text = self.as_text();
  const int64_t gap = std::max<int64_t>(width - static_cast<int64_t>(count_code_points(text)), 0);
  const bool has_sign = text.starts_with('+') || text.starts_with('-');
  text.insert(has_sign ? 1 : 0, static_cast<size_t>(gap), '0');
  return m.text(std::move(text));
}

std::string swap_case(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    const std::string_view piece = text.substr(i, point.bytes);
    out += is_upper(point.value) ? to_lower(piece) : to_upper(piece);
    i += point.bytes;
  }
  return out;
}

constexpr MethodRow kTextMethods[] = {
    {Kind::kText, "strip", stripped<true, true>},
    {Kind::kText, "lstrip", stripped<true, false>},
    {Kind::kText, "rstrip", stripped<false, true>},
    {Kind::kText, "split", split_text<false>},
    {Kind::kText, "rsplit", split_text<true>},
    {Kind::kText, "partition", partition<false>},
    {Kind::kText, "rpartition", partition<true>},
    {Kind::kText, "splitlines", lines},
    {Kind::kText, "startswith", starts_or_ends<true>},
    {Kind::kText, "endswith", starts_or_ends<false>},
    {Kind::kText, "removeprefix", remove_affix<true>},
    {Kind::kText, "removesuffix", remove_affix<false>},
    {Kind::kText, "upper", method_mapped<to_upper>},
    {Kind::kText, "lower", method_mapped<to_lower>},
    {Kind::kText, "title", method_mapped<title_case>},
    {Kind::kText, "capitalize", method_mapped<capitalize>},
    {Kind::kText, "replace", replaced},
    {Kind::kText, "find", found<false, false>},
    {Kind::kText, "rfind", found<true, false>},
    {Kind::kText, "index", found<false, true>},
    {Kind::kText, "rindex", found<true, true>},
    {Kind::kText, "zfill", zero_filled},
    {Kind::kText, "ljust", justified<Side::kLeft>},
    {Kind::kText, "rjust", justified<Side::kRight>},
    {Kind::kText, "center", justified<Side::kBoth>},
    {Kind::kText, "swapcase", method_mapped<swap_case>},
    {Kind::kText, "casefold", method_mapped<to_lower>},
    {Kind::kText, "count", counted},
    {Kind::kText, "join", joined},
    {Kind::kText, "format", format_method},
    {Kind::kText, "isspace", all_are<is_space>},
    {Kind::kText, "isdigit", all_are<is_digit>},
    {Kind::kText, "isdecimal", all_are<is_digit>},
    {Kind::kText, "isnumeric", all_are<is_digit>},
    {Kind::kText, "isalpha", all_are<is_letter>},
    {Kind::kText, "isalnum", all_are<is_alphanumeric>},
    {Kind::kText, "isupper", case_is<true>},
    {Kind::kText, "islower", case_is<false>},
};

}  // namespace

std::span<const MethodRow> text_methods() { return kTextMethods; }

Result<Value> replace_text(Machine& machine, std::string_view text, std::string_view old,
                           std::string_view with, int64_t count) {
  DP_CHECK(machine.spend(1 + text.size() / kBytesPerStep));
  std::string out;
  size_t at = 0;
  for (int64_t done = 0; count < 0 || done < count; ++done) {
    const size_t hit = old.empty() ? at : text.find(old, at);
    if (hit == text.npos) break;
    DP_CHECK(machine.spend_bytes(with.size() + hit - at));
    out.append(text.substr(at, hit - at)).append(with);
    at = hit + old.size();
    if (!old.empty()) continue;
    if (at == text.size()) return machine.text(std::move(out));  // an empty `old` also matches at the end
    const uint32_t bytes = code_point_at(text, at).bytes;
    out.append(text.substr(at, bytes));
    at += bytes;
  }
  out.append(text.substr(at));
  return machine.text(std::move(out));
}

}  // namespace doppler::tmpl
