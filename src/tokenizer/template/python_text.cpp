// Python's rules for text. The white-space set is that of str.isspace, the line ends those of str.splitlines.
#include "tokenizer/template/python_text.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/number_text.h"
#include "base/text.h"

namespace doppler::tmpl {
namespace {

constexpr uint32_t kStrayByte = 0xDC00;  // surrogates cannot occur in valid UTF-8, so they can mark bad bytes

bool between(uint32_t value, uint32_t first, uint32_t last) { return value >= first && value <= last; }

// Two letters in one code point. Three code points follow one another: both letters capital (upper), only the first
// one, neither.
struct Digraph {
  uint32_t upper;
};
constexpr Digraph kDigraphs[] = {{0x1C4}, {0x1C7}, {0x1CA}, {0x1F1}};
const Digraph* digraph_of(uint32_t c) {
  for (const Digraph& digraph : kDigraphs) {
    if (between(c, digraph.upper, digraph.upper + 2)) return &digraph;
  }
  return nullptr;
}

uint32_t upper_of(uint32_t c) {
  if (const Digraph* digraph = digraph_of(c)) return digraph->upper;
  if (between(c, 'a', 'z')) return c - 32;
  if (c < 0xB5) return c;
  if (c == 0xB5) return 0x39C;
  if (between(c, 0xE0, 0xFE) && c != 0xF7) return c - 32;
  if (c == 0xFF) return 0x178;
  if (between(c, 0x100, 0x137) || between(c, 0x14A, 0x177)) {
    if (c == 0x131) return 'I';
    return c & 1 ? c - 1 : c;
  }
  if (between(c, 0x139, 0x148) || between(c, 0x179, 0x17E)) return c & 1 ? c : c - 1;
  if (c == 0x3C2) return 0x3A3;
  if (between(c, 0x3B1, 0x3CB)) return c - 32;
  if (c == 0x3AC) return 0x386;
  if (between(c, 0x3AD, 0x3AF)) return c - 37;
  if (c == 0x3CC) return 0x38C;
  if (between(c, 0x3CD, 0x3CE)) return c - 63;
  if (between(c, 0x430, 0x44F)) return c - 32;
  if (between(c, 0x450, 0x45F)) return c - 80;
  if (between(c, 0x460, 0x481) || between(c, 0x48A, 0x4BF) || between(c, 0x4D0, 0x52F))
    return c & 1 ? c - 1 : c;
  return c;
}

uint32_t lower_of(uint32_t c) {
  if (const Digraph* digraph = digraph_of(c)) return digraph->upper + 2;
  if (between(c, 'A', 'Z')) return c + 32;
  if (c < 0xC0) return c;
  if (between(c, 0xC0, 0xDE) && c != 0xD7) return c + 32;
  if (c == 0x178) return 0xFF;
  if (c == 0x130) return 'i';
  if (between(c, 0x100, 0x137) || between(c, 0x14A, 0x177)) return c | 1;
  if (between(c, 0x139, 0x148) || between(c, 0x179, 0x17E)) return c & 1 ? c + 1 : c;
  if (between(c, 0x391, 0x3AB) && c != 0x3A2) return c + 32;
  if (c == 0x386) return 0x3AC;
  if (between(c, 0x388, 0x38A)) return c + 37;
  if (c == 0x38C) return 0x3CC;
  if (between(c, 0x38E, 0x38F)) return c + 63;
  if (between(c, 0x410, 0x42F)) return c + 32;
  if (between(c, 0x400, 0x40F)) return c + 80;
  if (between(c, 0x460, 0x481) || between(c, 0x48A, 0x4BF) || between(c, 0x4D0, 0x52F)) return c | 1;
  return c;
}

constexpr uint32_t kSharpS = 0xDF;

// Letters whose capitals are several.
struct Ligature {
  uint32_t code;
  const char *upper, *title;
};
constexpr Ligature kLigatures[] = {
    {kSharpS, "SS", "Ss"},  {0x149, "\u02BCN", "\u02BCN"}, {0xFB00, "FF", "Ff"},
    {0xFB01, "FI", "Fi"},   {0xFB02, "FL", "Fl"},          {0xFB03, "FFI", "Ffi"},
    {0xFB04, "FFL", "Ffl"}, {0xFB05, "ST", "St"},          {0xFB06, "ST", "St"}};

void append_point(std::string& out, CodePoint point, std::string_view text, size_t offset, uint32_t mapped) {
  if (mapped == point.value)
    out.append(text.substr(offset, point.bytes));
  else
    append_utf8(out, mapped);
}

bool is_line_end(uint32_t c) {
  return between(c, 0x0A, 0x0D) || between(c, 0x1C, 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_printable(uint32_t c) {
  if (c < 0x20 || between(c, 0x7F, 0xA0) || c == 0xAD) return false;
  if (c < 0x2000) return c != 0x1680 && c != 0x180E;
  if (between(c, 0x2000, 0x200F) || between(c, 0x2028, 0x202F) || between(c, 0x205F, 0x206F)) return false;
  return c != 0x3000 && !between(c, 0xD800, 0xF8FF) && c != 0xFEFF && !between(c, 0xFFF0, 0xFFFB) &&
         c < 0xE0000;
}

}  // namespace

CodePoint code_point_at(std::string_view text, size_t offset) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint32_t first = byte(offset);
  if (first < 0x80) return {first, 1};
  const uint32_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() - offset < length) return {kStrayByte + first, 1};
  uint32_t value = first & (0xFFu >> (length + 1));
  for (uint32_t i = 1; i < length; ++i) {
    if ((byte(offset + i) & 0xC0) != 0x80) return {kStrayByte + first, 1};
    value = (value << 6) | (byte(offset + i) & 0x3F);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (overlong || value > 0x10FFFF || between(value, 0xD800, 0xDFFF)) return {kStrayByte + first, 1};
  return {value, length};
}

void append_utf8(std::string& out, uint32_t c) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

size_t count_code_points(std::string_view text) {
  size_t count = 0;
  for (size_t i = 0; i < text.size(); i += code_point_at(text, i).bytes) ++count;
  return count;
}

std::vector<size_t> code_point_offsets(std::string_view text) {
  std::vector<size_t> offsets;
  for (size_t i = 0; i < text.size(); i += code_point_at(text, i).bytes) offsets.push_back(i);
  offsets.push_back(text.size());
  return offsets;
}

bool is_space(uint32_t c) {
  return between(c, 0x09, 0x0D) || between(c, 0x1C, 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         between(c, 0x2000, 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_upper(uint32_t c) { return lower_of(c) != c; }
bool is_lower(uint32_t c) { return upper_of(c) != c || c == kSharpS; }
bool is_letter(uint32_t c) {
  return is_upper(c) || is_lower(c) || (c >= 0x531 && !is_space(c) && is_printable(c));
}

std::string to_upper(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    const auto* ligature = std::ranges::find(kLigatures, point.value, &Ligature::code);
    if (ligature != std::end(kLigatures))
      out += ligature->upper;
    else
      append_point(out, point, text, i, upper_of(point.value));
    i += point.bytes;
  }
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    append_point(out, point, text, i, lower_of(point.value));
    i += point.bytes;
  }
  return out;
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  const uint32_t first = code_point_at(text, 0).bytes;
  return title_of(text.substr(0, first)) + to_lower(text.substr(first));
}

std::string title_of(std::string_view character) {
  const uint32_t c = code_point_at(character, 0).value;
  std::string out;
  if (const Digraph* digraph = digraph_of(c)) {
    append_utf8(out, digraph->upper + 1);
    return out;
  }
  for (const Ligature& ligature : kLigatures) {
    if (ligature.code == c) return ligature.title;
  }
  return to_upper(character);
}

std::string title_case(std::string_view text) {
  std::string out;
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    const std::string_view piece = text.substr(i, point.bytes);
    out += in_word ? to_lower(piece) : title_of(piece);
    in_word = is_letter(point.value);
    i += point.bytes;
  }
  return out;
}

std::string_view strip(std::string_view text, const std::string_view* chars, bool left, bool right) {
  const auto drops = [&](size_t offset, CodePoint point) {
    if (!chars) return is_space(point.value);
    const std::string_view wanted = text.substr(offset, point.bytes);
    for (size_t i = 0; i < chars->size(); i += code_point_at(*chars, i).bytes) {
      if (chars->substr(i, code_point_at(*chars, i).bytes) == wanted) return true;
    }
    return false;
  };
  size_t begin = 0;
  while (left && begin < text.size()) {
    const CodePoint point = code_point_at(text, begin);
    if (!drops(begin, point)) break;
    begin += point.bytes;
  }
  size_t end = text.size();
  while (right && end > begin) {
    size_t start = end - 1;  // back to the first byte of the last code point
    while (start > begin && end - start < 4 && (static_cast<uint8_t>(text[start]) & 0xC0) == 0x80) --start;
    if (start + code_point_at(text, start).bytes != end) start = end - 1;
    if (!drops(start, code_point_at(text, start))) break;
    end = start;
  }
  return text.substr(begin, end - begin);
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    const size_t at = i;
    i += point.bytes;
    if (!is_line_end(point.value)) continue;
    if (point.value == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(start, at - start));
    start = i;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const std::string scientific = shortest_text(value);
  const std::string_view written = scientific;
  const size_t mark = written.find('e');
  const int64_t exponent =
      parse_int(written.substr(written[mark + 1] == '+' ? mark + 2 : mark + 1)).value_or(0);
  const bool negative = written[0] == '-';
  std::string digits;
  for (const char c : written.substr(0, mark)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  std::string out = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16) {  // Python's repr changes to an exponent here
    out += digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    return out + format_text("e%c%02d", exponent < 0 ? '-' : '+', static_cast<int>(std::abs(exponent)));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string text_repr(std::string_view text) {
  const bool double_quotes = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const CodePoint point = code_point_at(text, i);
    const uint32_t c = point.value;
    if (c == static_cast<uint32_t>(quote) || c == '\\')
      (out += '\\') += static_cast<char>(c);
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (is_printable(c))
      out += text.substr(i, point.bytes);
    else
      out += format_text(c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    i += point.bytes;
  }
  return out + quote;
}

}  // namespace doppler::tmpl
