#include "store/http_headers.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "base/text.h"

namespace doppler::store {
namespace {

constexpr size_t kMostTagBytes = 512;

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

// Removes "bytes" and the separator after it; nothing if another unit stands there.
std::optional<std::string_view> after_unit(std::string_view value, char separator) {
  value = trim(value);
  constexpr std::string_view kUnit = "bytes";
  if (value.size() <= kUnit.size() || !equal_ignoring_case(value.substr(0, kUnit.size()), kUnit)) return {};
  if (value[kUnit.size()] != separator) return {};
  return trim(value.substr(kUnit.size() + 1));
}

constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

// Two digits at a place; nothing if they are none.
std::optional<int> two_digits(std::string_view text, size_t at) {
  const auto number = parse_decimal(text.substr(at, 2));
  return number ? std::optional<int>(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace

std::optional<uint64_t> parse_decimal(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

std::optional<ContentRange> parse_content_range(std::string_view value) {
  const auto rest = after_unit(value, ' ');
  if (!rest) return {};
  const size_t slash = rest->find('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view span = rest->substr(0, slash), size = rest->substr(slash + 1);
  ContentRange out;
  if (size != "*") {
    out.total = parse_decimal(size);
    if (!out.total) return {};
  }
  if (span == "*") return out.total ? std::optional(out) : std::nullopt;
  const size_t dash = span.find('-');
  if (dash == std::string_view::npos) return {};
  const auto first = parse_decimal(span.substr(0, dash)), last = parse_decimal(span.substr(dash + 1));
  if (!first || !last || *first > *last || *last == UINT64_MAX) return {};
  if (out.total && *last >= *out.total) return {};
  out.range = ByteRange{*first, *last};
  return out;
}

std::string content_range(const ByteRange& range, uint64_t total) {
  return format_text("bytes %llu-%llu/%llu", static_cast<unsigned long long>(range.first),
                     static_cast<unsigned long long>(range.last), static_cast<unsigned long long>(total));
}

std::optional<int64_t> parse_http_date(std::string_view value) {
  // Only the one form that is still generated: "Sun, 06 Nov 1994 08:49:37 GMT".
  constexpr size_t kLength = 29;
  if (value.size() != kLength || value.substr(25) != " GMT" || value[3] != ',' || value[19] != ':' ||
      value[22] != ':') {
    return {};
  }
  const auto month = std::ranges::find(kMonths, value.substr(8, 3));
  const auto day = two_digits(value, 5), hour = two_digits(value, 17), minute = two_digits(value, 20),
             second = two_digits(value, 23);
  const auto year = parse_decimal(value.substr(12, 4));
  if (month == std::end(kMonths) || !day || !hour || !minute || !second || !year) return {};
  if (*day < 1 || *day > 31 || *hour > 23 || *minute > 59 || *second > 60 || *year < 1970) return {};
  namespace chrono = std::chrono;
  // A day beyond the month's end is one of the next month.
  const chrono::sys_days first =
      chrono::year(static_cast<int>(*year)) / static_cast<int>(month - std::begin(kMonths) + 1) / 1;
  const chrono::sys_seconds at = first + chrono::days(*day - 1) + chrono::hours(*hour) +
                                 chrono::minutes(*minute) + chrono::seconds(*second);
  return at.time_since_epoch().count();
}

std::string http_date(int64_t seconds) {
  const std::time_t time = static_cast<std::time_t>(seconds);
  std::tm tm{};
  ::gmtime_r(&time, &tm);
  return format_text("%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[tm.tm_wday], tm.tm_mday, kMonths[tm.tm_mon],
                     tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

std::optional<uint64_t> parse_retry_after(std::string_view value, int64_t now) {
  value = trim(value);
  if (const auto seconds = parse_decimal(value)) return seconds;
  const auto date = parse_http_date(value);
  if (!date) return {};
  return *date > now ? static_cast<uint64_t>(*date - now) : 0;
}

std::optional<std::string> strong_etag(std::string_view value) {
  value = trim(value);
  if (value.size() < 3 || value.size() > kMostTagBytes || value.front() != '"' || value.back() != '"')
    return {};
  const std::string_view inside = value.substr(1, value.size() - 2);
  const bool clean = std::ranges::all_of(inside, [](char c) { return c > ' ' && c < 0x7f && c != '"'; });
  return clean ? std::optional(std::string(value)) : std::nullopt;
}

RangeRequest parse_range(std::string_view value, uint64_t size) {
  const auto spec = after_unit(value, '=');
  if (!spec || spec->find(',') != std::string_view::npos) return {};
  const size_t dash = spec->find('-');
  if (dash == std::string_view::npos) return {};
  const std::string_view from = spec->substr(0, dash), to = spec->substr(dash + 1);
  if (from.empty()) {
    const auto count = parse_decimal(to);
    if (!count) return {};
    if (*count == 0 || size == 0) return {.answer = RangeAnswer::kUnsatisfiable};
    return {.answer = RangeAnswer::kPart, .range = {size - std::min(size, *count), size - 1}};
  }
  const auto first = parse_decimal(from);
  const auto last = to.empty() ? std::optional(UINT64_MAX) : parse_decimal(to);
  if (!first || !last || *first > *last) return {};
  if (*first >= size) return {.answer = RangeAnswer::kUnsatisfiable};
  return {.answer = RangeAnswer::kPart, .range = {*first, std::min(*last, size - 1)}};
}

bool etag_list_names(std::string_view list, std::string_view etag) {
  if (trim(list) == "*") return true;
  for (const std::string& entry : split(list, ',')) {
    std::string_view tag = trim(entry);
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == etag) return true;
  }
  return false;
}

}  // namespace doppler::store
