// The judgements of `doppler squeeze`: which cadence won, what in a run is a red flag, and whether a tuned model still
// says what it said before. The loop itself is src/cli/squeeze.cpp. Read next: tuner.h, profile.h.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/profile.h"
#include "bench/tuner.h"

namespace doppler::bench {

struct CadencePoint {
  Cadence cadence;
  double rate = 0;  // decode tok/s, median
};
// The cadence with the fewest steps that come back together, among those within 1 % of the fastest: more steps would
// only make text come later. Without points: the default cadence.
Cadence best_cadence(std::span<const CadencePoint> sweep);

struct RedFlag {
  std::string name;  // "pinned-variant", "portable-row", "submits", "idle-device", "slow-host"
  std::string sentence;
  bool operator==(const RedFlag&) const = default;
};
struct FlagInputs {
  Row decode;  // an investigation's, so that it has GPU time
  std::span<const PlanProfile> plans;
  std::span<const kernels::Choice> choices;
};
std::vector<RedFlag> red_flags(const FlagInputs& inputs);

// The same prompt before and after tuning. Errors are relative L2 of logits against the portable lane's.
struct GateInputs {
  std::vector<int32_t> tokens_before, tokens_after;  // greedy
  double error_before = 0, error_after = 0;
  bool synthetic = false;  // flat logits: a tie breaks either way, so tokens are counted but not required
};
struct Gate {
  bool passed = false;
  size_t equal_tokens = 0, tokens = 0;
  double error_before = 0, error_after = 0, allowed = 0;
  std::string sentence;
};
Gate judge(const GateInputs& inputs);

struct SqueezeReport {
  RunFacts facts;
  // The same tests. `before` was measured a second time after the tuned runs, and has the samples of both.
  std::vector<Row> before, after;
  std::vector<CadencePoint> sweep;
  Cadence cadence;
  std::vector<RedFlag> flags_before, flags_after;
  std::vector<std::string> notes;  // of the profile before
  TunerResult tuning;
  Gate gate;
  std::vector<std::string> commands;  // what to type to repeat each part
};
std::string squeeze_text(const SqueezeReport& report);
std::string squeeze_json(const SqueezeReport& report);

}  // namespace doppler::bench
