// tuner.h: candidates, rounds in turns, what counts as faster and as equal.
#include "bench/tuner.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/text.h"
#include "bench/statistics.h"

namespace doppler::bench {
namespace {

constexpr double kLeastGain = 0.01;   // of a whole step; a smaller gain is within what runs differ by
constexpr double kMostLoss = 0.005;   // of the other phase, if both use the operation
constexpr double kHopeless = 1.15;    // after one round: not measured further
constexpr double kColdShare = 0.003;  // of a phase: no candidate could gain kLeastGain there
// Candidates may not be less accurate than the tables' choices: theirs with some room for another order of additions,
// and at least the f32 lane's tolerance (docs/design/testing.md).
constexpr double kErrorRoom = 1.25, kErrorFloor = 1e-4;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Candidate {
  std::string operation, shape;
  std::string variant;
  std::string constant;  // empty: another variant with its own constants
  uint32_t value = 0;
};

std::string name_of(const kernels::Choice& choice) {
  std::string name = choice.variant;
  for (const kernels::ChosenConstant& constant : choice.constants) {
    if (constant.value != constant.standard)
      name += format_text(" %s=%u", constant.name.c_str(), constant.value);
  }
  return name;
}

class Search {
 public:
  Search(TrialMaker& maker, const TunerSettings& settings) : maker_(maker), settings_(settings) {
    if (!settings_.clock) settings_.clock = steady_seconds;
    end_ = settings_.clock() + settings_.budget_seconds;
  }

  Result<TunerResult> run() {
    DP_TRY(current_, maker_.load(result_.table));
    std::vector<kernels::Choice> order = current_->choices();
    std::erase_if(order, [&](const kernels::Choice& c) { return c.forced || heat(c) < kColdShare; });
    std::ranges::stable_sort(order, [&](const auto& a, const auto& b) { return heat(a) > heat(b); });
    for (const kernels::Choice& choice : order) {
      for (const std::string& other : choice.others) {
        DP_CHECK(attempt({choice.operation, choice.shape, other, "", 0}));
      }
      // The constants of the variant that won.
      const kernels::Choice* now = find(*current_, choice.operation, choice.shape);
      if (!now) continue;
      const kernels::Choice won = *now;
      for (const kernels::ChosenConstant& constant : won.constants) {
        for (const uint32_t value : constant.alternatives) {
          if (value == constant.value) continue;
          DP_CHECK(attempt({choice.operation, choice.shape, won.variant, constant.name, value}));
        }
      }
    }
    return std::move(result_);
  }

 private:
  double heat(const kernels::Choice& choice) const {
    return std::max(current_->share(Phase::kDecode, choice.variant),
                    current_->share(Phase::kPrefill, choice.variant));
  }

  static const kernels::Choice* find(const Trial& trial, const std::string& operation,
                                     const std::string& shape) {
    for (const kernels::Choice& choice : trial.choices()) {
      if (choice.operation == operation && choice.shape == shape) return &choice;
    }
    return nullptr;
  }

  Result<void> attempt(const Candidate& candidate) {
    if (settings_.clock() >= end_) {
      result_.out_of_time = true;
      return {};
    }
    const kernels::Choice* before = find(*current_, candidate.operation, candidate.shape);
    if (!before) return {};  // what won meanwhile made the operation go away
    Attempt attempt{.operation = candidate.operation, .shape = candidate.shape, .from = name_of(*before)};
    attempt.to = candidate.variant;
    if (!candidate.constant.empty())
      attempt.to += format_text(" %s=%u", candidate.constant.c_str(), candidate.value);
    if (settings_.progress) {
      settings_.progress(attempt.operation + " " + attempt.shape + ": " + attempt.from + " or " + attempt.to);
    }
    kernels::TuningTable table = result_.table;
    kernels::TunedChoice& entry = table.choices[{candidate.operation, candidate.shape}];
    if (entry.variant != candidate.variant) {
      entry.variant = candidate.variant;
      entry.constants.clear();
    }
    if (!candidate.constant.empty()) entry.constants[candidate.constant] = candidate.value;
    auto trial = maker_.load(table);
    if (!trial) {
      attempt.verdict = "cannot be used: " + trial.error().sentence();
    } else {
      const std::string old_variant = before->variant;
      auto judged = judge(**trial, old_variant, candidate.variant, attempt);
      if (!judged) attempt.verdict = "failed: " + judged.error().sentence();
    }
    if (attempt.kept) {
      entry.seconds = attempt.seconds;
      if (entry.table_seconds == 0) entry.table_seconds = attempt.from_seconds;
      result_.table = std::move(table);
      current_ = std::move(*trial);
    }
    result_.attempts.push_back(std::move(attempt));
    return {};
  }

  // Measures every phase that uses either variant; fills the attempt with the one that gained or lost most.
  Result<void> judge(Trial& trial, const std::string& old_variant, const std::string& new_variant,
                     Attempt& attempt) {
    bool gains = false, loses = false;
    double strongest = 0;
    for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
      if (current_->share(phase, old_variant) == 0 && trial.share(phase, new_variant) == 0) continue;
      std::vector<double> before, after, ratios;
      for (uint32_t round = 0; round < settings_.rounds; ++round) {
        DP_TRY(const double a, current_->seconds(phase));
        DP_TRY(const double b, trial.seconds(phase));
        before.push_back(a);
        after.push_back(b);
        ratios.push_back(b / a);
        if (b / a > kHopeless) break;
      }
      const double ratio = median(ratios);
      // Nearly all rounds must agree: one outlier may be noise, two are the answer.
      const auto slower = std::ranges::count_if(ratios, [](double r) { return r >= 1; });
      gains = gains || (ratio < 1 - kLeastGain && slower <= 1);
      loses = loses || ratio > 1 + kMostLoss;
      if (strongest != 0 && std::abs(ratio - 1) <= strongest) continue;
      strongest = std::max(std::abs(ratio - 1), 1e-12);
      attempt.phase = phase;
      attempt.ratio = ratio;
      attempt.seconds = median(after);
      attempt.from_seconds = median(before);
    }
    attempt.verdict =
        format_text("%.1f %% %s", std::abs(attempt.ratio - 1) * 100, attempt.ratio < 1 ? "faster" : "slower");
    if (!gains || loses) {
      if (gains) attempt.verdict += ", but the other phase loses";
      return {};
    }
    if (!has_table_error_) {  // needed only if a candidate gains; the tables' choices are still in use
      DP_TRY(result_.table_error, current_->error());
      has_table_error_ = true;
    }
    DP_TRY(const double error, trial.error());
    const double most = std::max(kErrorFloor, result_.table_error * kErrorRoom);
    if (!(error <= most)) {
      attempt.verdict += format_text(", but its logits are off by %.2e (allowed: %.2e)", error, most);
      return {};
    }
    attempt.kept = true;
    return {};
  }

  TrialMaker& maker_;
  TunerSettings settings_;
  double end_ = 0;
  bool has_table_error_ = false;
  std::unique_ptr<Trial> current_;
  TunerResult result_;
};

}  // namespace

const char* phase_name(Phase phase) { return phase == Phase::kDecode ? "decode" : "prefill"; }

Result<TunerResult> tune(TrialMaker& maker, const TunerSettings& settings) {
  return Search(maker, settings).run();
}

}  // namespace doppler::bench
