// Small text helpers: printf-style formatting into std::string (std::format costs 427 KB in WebAssembly),
// number parsing, byte sizes for people, and "did you mean".
#pragma once

#include <cstdarg>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace doppler {

[[gnu::format(printf, 1, 2)]] std::string format_text(const char* format, ...);
std::string format_text_v(const char* format, va_list args);

// 1536 -> "1.5 KiB"; exact bytes below 1 KiB.
std::string format_bytes(uint64_t bytes);

// The whole text must be the number; nothing else is accepted.
std::optional<int64_t> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);  // ASCII white space on both ends
char ascii_lower(char c);
std::string ascii_lower(std::string_view text);

// Text that may come from a hostile file, made safe to print: control characters and invalid UTF-8 become
// \xNN, cut after max_bytes with "...".
std::string printable(std::string_view text, size_t max_bytes = 80);

// The candidate with the smallest edit distance, if it is near enough to be a likely typing error.
std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace doppler
