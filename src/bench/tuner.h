// The search of `doppler tune`. For one operation and shape after another, hottest first, it measures every other
// variant and then every alternative of the chosen variant's constants against the present choice, in turns, on whole
// steps of the model. A candidate that is clearly faster and computes the same stays. Read next: tuner_model.h (how a
// model is measured).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/origin.h"
#include "kernels/tuning.h"

namespace doppler::bench {

enum class Phase : uint8_t { kDecode, kPrefill };
const char* phase_name(Phase phase);

// A model that runs with one table. Tests use a scripted one.
class Trial {
 public:
  virtual ~Trial() = default;
  virtual const std::vector<kernels::Choice>& choices() const = 0;
  // The part of the phase's GPU time that commands of this variant take; 0: the phase does not use the variant.
  virtual double share(Phase phase, const std::string& variant) const = 0;
  // One sample: wall clock of a decode step, or of a prefill chunk divided by its rows.
  virtual Result<double> seconds(Phase phase) = 0;
  // Relative L2 of the logits on random tokens against the portable lane's: the larger of the errors through the decode
  // kernels and through the prefill kernels.
  virtual Result<double> error() = 0;
};

class TrialMaker {
 public:
  virtual ~TrialMaker() = default;
  virtual Result<std::unique_ptr<Trial>> load(const kernels::TuningTable& table) = 0;
};

struct Attempt {
  std::string operation, shape;
  std::string from, to;  // "matvec.q4_k.dp4a", or "matvec.q4_k.dp4a slices=8"
  Phase phase = Phase::kDecode;
  double seconds = 0, from_seconds = 0;  // medians
  double ratio = 1;                      // median of the rounds' seconds / from_seconds; below 1 is faster
  bool kept = false;
  std::string verdict;  // "2.1 % slower"; "faster, but ..."
};

struct TunerSettings {
  double budget_seconds = 60;
  uint32_t rounds = 5;
  std::function<double()> clock;                     // seconds since anything; null: the steady clock
  std::function<void(const std::string&)> progress;  // one line before each attempt
};

struct TunerResult {
  kernels::TuningTable table;  // only what differs from the tables' choices
  std::vector<Attempt> attempts;
  bool out_of_time = false;  // candidates were left
  double table_error = 0;    // error() of the tables' choices; 0 if no candidate was fast enough to need it
};

// Errors: the tables' own choices cannot be loaded or measured. A candidate that fails is an attempt not kept.
Result<TunerResult> tune(TrialMaker& maker, const TunerSettings& settings);

std::string tuner_text(const TunerResult& result);
std::string tuner_json(const TunerResult& result, const kernels::TuningKey& key, const Origin& origin);

}  // namespace doppler::bench
