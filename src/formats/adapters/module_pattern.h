// The regular expressions of adapter_config.json, which name modules by the end of their names. They have literals,
// '.', classes, groups, alternatives and the counts * + ?. The matcher is our own, since patterns come from strangers:
// it takes a bounded number of steps.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"

namespace doppler::formats {

struct PatternNode;

class ModulePattern {
 public:
  // Error: the text has other syntax.
  static Result<ModulePattern> parse(std::string_view text);
  ModulePattern(ModulePattern&&) noexcept;
  ModulePattern& operator=(ModulePattern&&) noexcept;
  ~ModulePattern();

  // Says whether the pattern matches the whole name, or all that follows one of its dots. It is false too if that takes
  // too many steps.
  bool matches_end_of(std::string_view module) const;

 private:
  explicit ModulePattern(std::unique_ptr<PatternNode> root);
  std::unique_ptr<PatternNode> root_;
};

}  // namespace doppler::formats
