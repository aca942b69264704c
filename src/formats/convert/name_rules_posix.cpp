#include "formats/convert/name_rules_posix.h"

#include <regex.h>

namespace doppler::formats {

struct NameRules::Rule {
  std::string text, word;
  regex_t compiled{};
  bool is_compiled = false, used = false;

  Rule() = default;
  Rule(const Rule&) = delete;
  Rule& operator=(const Rule&) = delete;
  ~Rule() {
    if (is_compiled) regfree(&compiled);
  }
};

NameRules::NameRules() = default;
NameRules::NameRules(NameRules&&) noexcept = default;
NameRules& NameRules::operator=(NameRules&&) noexcept = default;
NameRules::~NameRules() = default;

Result<NameRules> NameRules::compile(const std::vector<std::pair<std::string, std::string>>& rules) {
  NameRules out;
  for (const auto& [text, word] : rules) {
    auto rule = std::make_unique<Rule>();
    rule->text = text;
    rule->word = word;
    const int error =
        text.empty() ? REG_BADPAT : regcomp(&rule->compiled, text.c_str(), REG_EXTENDED | REG_NOSUB);
    if (error != 0) {
      char reason[128];
      regerror(error, &rule->compiled, reason, sizeof reason);
      return fail(ErrorKind::kInvalidInput, "\"%s\" is no regular expression: %s.", printable(text).c_str(),
                  reason);
    }
    rule->is_compiled = true;
    out.rules_.push_back(std::move(rule));
  }
  return out;
}

const std::string* NameRules::find(const std::string& name) {
  const std::string* word = nullptr;
  for (const auto& rule : rules_) {
    if (regexec(&rule->compiled, name.c_str(), 0, nullptr, 0) != 0) continue;
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
