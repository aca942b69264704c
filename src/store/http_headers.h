// The small grammars of HTTP that downloading and serving need: Content-Range, Retry-After, entity tags, Range. The
// text comes from a stranger: every function returns nothing for text that it does not understand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace doppler::store {

struct ByteRange {
  uint64_t first = 0, last = 0;  // both inclusive, first <= last
  uint64_t count() const { return last - first + 1; }
  bool operator==(const ByteRange&) const = default;
};

// "bytes 0-99/1234", "bytes 0-99/*" and, with a 416, "bytes */1234".
struct ContentRange {
  std::optional<ByteRange> range;
  std::optional<uint64_t> total;
};
std::optional<ContentRange> parse_content_range(std::string_view value);
std::string content_range(const ByteRange& range, uint64_t total);

// Digits only, no sign, no overflow.
std::optional<uint64_t> parse_decimal(std::string_view text);

// Seconds from now: "120", or an HTTP date against `now` (seconds since 1970); a date in the past is 0.
std::optional<uint64_t> parse_retry_after(std::string_view value, int64_t now);
// "Sun, 06 Nov 1994 08:49:37 GMT" to seconds since 1970, and back.
std::optional<int64_t> parse_http_date(std::string_view value);
std::string http_date(int64_t seconds);

// The tag with its quotes if it is a strong one of a reasonable length; weak tags say nothing about bytes.
std::optional<std::string> strong_etag(std::string_view value);

// A server's answer to a Range header for a file of `size` bytes.
enum class RangeAnswer {
  kWhole,          // 200: no range, several ranges, another unit, or not understood
  kPart,           // 206
  kUnsatisfiable,  // 416
};
struct RangeRequest {
  RangeAnswer answer = RangeAnswer::kWhole;
  ByteRange range;  // of kPart
};
RangeRequest parse_range(std::string_view value, uint64_t size);

// True if an If-None-Match (or If-Match) list names the tag; weak comparison.
bool etag_list_names(std::string_view list, std::string_view etag);

}  // namespace doppler::store
