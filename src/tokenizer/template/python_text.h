// Python's view of text, over UTF-8: code points, white space, case, and how str and repr write things. Bytes that are
// not UTF-8 count as one code point each and pass through unchanged. Case covers Latin, Greek and Cyrillic; other
// scripts stay unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace doppler::tmpl {

// The code point at `offset` and its length in bytes; a stray byte gives {0xDC00 + byte, 1}.
struct CodePoint {
  uint32_t value;
  uint32_t bytes;
};
CodePoint code_point_at(std::string_view text, size_t offset);
void append_utf8(std::string& out, uint32_t code_point);

size_t count_code_points(std::string_view text);
// Byte offsets of each code point, and the size at the end: n + 1 entries.
std::vector<size_t> code_point_offsets(std::string_view text);

bool is_space(uint32_t code_point);  // Python's str.isspace
bool is_letter(uint32_t code_point);
bool is_upper(uint32_t code_point);
bool is_lower(uint32_t code_point);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title_of(std::string_view character);  // as a word begins: of digraphs only the first letter
std::string title_case(std::string_view text);     // str.title: a word starts after any non-letter

// Strips white space, or any of the code points in `chars`.
std::string_view strip(std::string_view text, const std::string_view* chars, bool left, bool right);
std::vector<std::string_view> split_lines(std::string_view text);

std::string float_repr(double value);  // the shortest text that reads back, as Python writes it
std::string text_repr(std::string_view text);

}  // namespace doppler::tmpl
