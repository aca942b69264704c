#include "formats/convert/name_rules_native.h"

#include "base/extended_regex.h"

namespace doppler::formats {

struct NameRules::Rule {
  std::string text, word;
  ExtendedRegex regex;
  bool used = false;
};

NameRules::NameRules() = default;
NameRules::NameRules(NameRules&&) noexcept = default;
NameRules& NameRules::operator=(NameRules&&) noexcept = default;
NameRules::~NameRules() = default;

Result<NameRules> NameRules::compile(const std::vector<std::pair<std::string, std::string>>& rules) {
  NameRules out;
  for (const auto& [text, word] : rules) {
    DP_TRY(ExtendedRegex regex, ExtendedRegex::compile(text));
    out.rules_.push_back(std::make_unique<Rule>(Rule{.text = text, .word = word, .regex = std::move(regex)}));
  }
  return out;
}

const std::string* NameRules::find(const std::string& name) {
  const std::string* word = nullptr;
  for (const auto& rule : rules_) {
    if (!rule->regex.is_found_in(name)) continue;
    rule->used = true;
    word = &rule->word;
  }
  return word;
}

std::vector<std::string> NameRules::unused() const {
  std::vector<std::string> texts;
  for (const auto& rule : rules_) {
    if (!rule->used) texts.push_back(rule->text);
  }
  return texts;
}

}  // namespace doppler::formats
