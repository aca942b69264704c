// `--tensor REGEX=TYPE`: extended regular expressions of POSIX that are searched in tensor names. Not part of the
// WebAssembly build.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace doppler::formats {

class NameRules {
 public:
  // Error: a text is no regular expression; says where it fails.
  static Result<NameRules> compile(const std::vector<std::pair<std::string, std::string>>& rules);
  NameRules(NameRules&&) noexcept;
  NameRules& operator=(NameRules&&) noexcept;
  ~NameRules();

  // The word of the last rule that matches, or null.
  const std::string* find(const std::string& name);
  // Expressions that matched no name so far: most likely typing errors.
  std::vector<std::string> unused() const;

 private:
  struct Rule;
  NameRules();
  std::vector<std::unique_ptr<Rule>> rules_;
};

}  // namespace doppler::formats
