// Finite sets of texts as regular expressions, and the other way round (opposite.h).
#include <map>
#include <memory>

#include "base/text.h"
#include "guidance/schema/opposite.h"

namespace doppler::guidance {
namespace {

constexpr std::string_view kSigns = "\\.+*?()|[]{}^$-/#&~\"'";

size_t character_bytes(std::string_view text, size_t at) {
  const auto lead = static_cast<uint8_t>(text[at]);
  const size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  return std::min(length, text.size() - at);
}

struct Trie {
  std::map<std::string, std::unique_ptr<Trie>> next;  // by character
  bool is_text = false;

  void add(std::string_view text) {
    if (text.empty()) {
      is_text = true;
      return;
    }
    const size_t bytes = character_bytes(text, 0);
    auto& child = next[std::string(text.substr(0, bytes))];
    if (!child) child = std::make_unique<Trie>();
    child->add(text.substr(bytes));
  }
  // A pattern of what may follow here, so that the whole is none of the texts.
  std::string others() const {
    if (next.empty()) return is_text ? "(?s:.+)" : "(?s:.*)";
    std::string letters, out;
    for (const auto& [character, child] : next) letters += escaped_pattern(character);
    out = "[^" + letters + "](?s:.*)";
    for (const auto& [character, child] : next) out += "|" + escaped_pattern(character) + child->others();
    return "(?:" + out + ")" + (is_text ? "" : "?");
  }
};

}  // namespace

std::string escaped_pattern(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (static_cast<uint8_t>(c) < ' ') {
      out += format_text("\\x%02X", static_cast<unsigned>(c));
      continue;
    }
    if (kSigns.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string pattern_of_others(const std::set<std::string>& texts) {
  Trie trie;
  for (const std::string& text : texts) trie.add(text);
  return "^" + trie.others() + "$";
}

std::optional<std::set<std::string>> texts_of_pattern(std::string_view pattern) {
  if (!pattern.starts_with('^') || !pattern.ends_with('$')) return {};
  pattern = pattern.substr(1, pattern.size() - 2);
  const bool is_group = pattern.starts_with('(') && pattern.ends_with(')');
  if (is_group) pattern = pattern.substr(1, pattern.size() - 2);
  std::set<std::string> out;
  for (const std::string& text : split(pattern, '|')) {
    if (text.find_first_of("\\.+*?()[]{}^$") != std::string::npos) return {};
    out.insert(text);
  }
  if (!is_group && out.size() != 1) return {};  // "^a|b$" has no anchor around each
  return out;
}

}  // namespace doppler::guidance
