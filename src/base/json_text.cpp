// The text of a JSON value. The contract is json.h.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/json.h"
#include "base/number_text.h"
#include "base/text.h"

namespace doppler {
namespace {

// The bytes of the UTF-8 character at `at`, at most 4; 0 if none begins there. `broken`: how many bytes began one that
// does not go on, at least 1 (Unicode 15, table 3-7).
size_t character_bytes(std::string_view text, size_t at, size_t* broken) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t first = byte(at);
  *broken = 1;
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  uint8_t low = 0x80,
          high = 0xBF;  // of the second byte: no overlong form, no surrogate, nothing above U+10FFFF
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  for (size_t i = 1; i < bytes; ++i, low = 0x80, high = 0xBF) {
    if (byte(at + i) < low || byte(at + i) > high) return 0;
    *broken = i + 1;
  }
  return bytes;
}

class Writer {
 public:
  explicit Writer(int indent) : indent_(indent) {}

  void value(const Json& json) {
    switch (json.type()) {
      case Json::Type::kNull:
        out_ += "null";
        break;
      case Json::Type::kBool:
        out_ += json.get<bool>() ? "true" : "false";
        break;
      case Json::Type::kInteger:
        out_ += std::to_string(json.get<int64_t>());
        break;
      case Json::Type::kUnsigned:
        out_ += std::to_string(json.get<uint64_t>());
        break;
      case Json::Type::kReal:
        real(json.get<double>());
        break;
      case Json::Type::kString:
        string(json.text());
        break;
      case Json::Type::kArray:
        open('[');
        for (const Json& item : json) {
          next();
          value(item);
        }
        close(']', json.empty());
        break;
      case Json::Type::kObject:
        open('{');
        for (const auto& [key, member] : json.items()) {
          next();
          string(key);
          out_ += indent_ < 0 ? ":" : ": ";
          value(member);
        }
        close('}', json.empty());
        break;
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void open(char bracket) {
    out_ += bracket;
    ++depth_;
    first_ = true;
  }
  void next() {
    if (!first_) out_ += ',';
    first_ = false;
    line();
  }
  void close(char bracket, bool empty) {
    --depth_;
    first_ = false;
    if (!empty) line();
    out_ += bracket;
  }
  void line() {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<size_t>(indent_) * depth_, ' ');
  }

  // The shortest digits that read back; positional from 1e-4 to 1e15, always with a point or an exponent. JSON has no
  // word for numbers that are not finite: null.
  void real(double number) {
    if (!std::isfinite(number)) {
      out_ += "null";
      return;
    }
    std::string digits = shortest_text(number);  // "-1.5e-07"
    const size_t e = digits.find('e');
    const int exponent = e == std::string::npos ? 0 : std::atoi(digits.c_str() + e + 1);
    digits.resize(std::min(e, digits.size()));
    if (digits.front() == '-') {
      out_ += '-';
      digits.erase(0, 1);
    }
    std::erase(digits, '.');
    const int count = static_cast<int>(digits.size());
    if (exponent >= 0 && exponent < 15) {
      if (count <= exponent + 1)
        out_ += digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
      else
        out_ += digits.insert(static_cast<size_t>(exponent) + 1, 1, '.');
    } else if (exponent < 0 && exponent >= -4) {
      out_ += "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
    } else {
      if (count > 1) digits.insert(1, 1, '.');
      out_ += digits + format_text("e%+03d", exponent);
    }
  }

  void string(std::string_view text) {
    out_ += '"';
    for (size_t i = 0; i < text.size();) {
      size_t broken = 0;
      const size_t bytes = character_bytes(text, i, &broken);
      if (bytes == 0) {
        out_ += "\xEF\xBF\xBD";
        i += broken;
      } else {
        if (bytes == 1)
          ascii(text[i]);
        else
          out_.append(text, i, bytes);
        i += bytes;
      }
    }
    out_ += '"';
  }

  void ascii(char c) {
    constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t";
    constexpr std::string_view kLetters = "\"\\bfnrt";
    if (const size_t at = kSpecial.find(c); at != std::string_view::npos) {
      out_ += '\\';
      out_ += kLetters[at];
    } else if (static_cast<uint8_t>(c) < 0x20) {
      out_ += format_text("\\u%04x", static_cast<unsigned>(c));
    } else {
      out_ += c;
    }
  }

  const int indent_;
  std::string out_;
  size_t depth_ = 0;
  bool first_ = true;
};

}  // namespace

std::string to_text(const Json& value, int indent) {
  Writer writer(indent);
  writer.value(value);
  return writer.take();
}

std::string without_infinities(std::string_view text) {
  constexpr std::string_view kWord = "Infinity";
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!in_string && text.substr(i, kWord.size()) == kWord) {
      out += "1e308";
      i += kWord.size() - 1;
      continue;
    }
    out += text[i];
    if (text[i] == '"') in_string = !in_string;
    if (in_string && text[i] == '\\' && i + 1 < text.size()) out += text[++i];
  }
  return out;
}

}  // namespace doppler
