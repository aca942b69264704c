// Compiles the patterns of the steps (splitter.h).
#include "tokenizer/splitter.h"

namespace doppler::tokenizer {

Result<Splitter> Splitter::create(const std::vector<SplitStep>& steps) {
  constexpr size_t kMaxSteps = 32;  // each is a level of recursion in split()
  if (steps.size() > kMaxSteps) {
    return fail(ErrorKind::kUnsupported, "The tokenizer splits text in %zu steps; at most %zu are allowed.",
                steps.size(), kMaxSteps);
  }
  Splitter out;
  for (const SplitStep& step : steps) {
    out.steps_.push_back({{}, step.behaviour, step.invert, step.adds_space});
    if (step.pattern.empty()) continue;
    DP_TRY(Regex regex, Regex::compile(step.pattern));
    out.steps_.back().regex.emplace(std::move(regex));
  }
  return out;
}

}  // namespace doppler::tokenizer
