// The regular expressions of adapter_config.json, which name modules by the end of their names: literals, '.', classes,
// groups, alternatives and the counts * + ?. Our own matcher, since patterns come from foreign files: it takes a bounded
// number of steps.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"

namespace doppler::formats {

struct PatternNode;

class ModulePattern {
 public:
  // Error: syntax that is not among these.
  static Result<ModulePattern> parse(std::string_view text);
  ModulePattern(ModulePattern&&) noexcept;
  ModulePattern& operator=(ModulePattern&&) noexcept;
  ~ModulePattern();

  // Whether the pattern is all of the name, or all that stands after one of its dots. false too if that takes too many
  // steps.
  bool matches_end_of(std::string_view module) const;

 private:
  explicit ModulePattern(std::unique_ptr<PatternNode> root);
  std::unique_ptr<PatternNode> root_;
};

}  // namespace doppler::formats
