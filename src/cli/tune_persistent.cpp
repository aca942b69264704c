// doppler tune: whether decode's layers are faster in one dispatch whose workgroups are co-resident. Unlike other
// candidates this one is a lane: whole models are loaded, since what it costs and needs depends on all layers.
#include <algorithm>

#include "bench/harness.h"
#include "bench/statistics.h"
#include "cli/measure.h"
#include "cli/tune.h"
#include "engine/api_impl.h"

namespace doppler::cli {
namespace {

constexpr const char* kOperation = "decode_layers";
constexpr const char* kPersistent = "decode_layers.persistent";
// For contexts up to kernels::kShortKeys, and beyond: two plans.
constexpr bench::Test kShort{.prompt = 0, .generate = 64, .depth = 128};
constexpr bench::Test kLong{.prompt = 0, .generate = 64, .depth = 1024};
constexpr uint32_t kRepetitions = 3;
constexpr double kClearly = 1.01;  // as tune() asks of a kernel
constexpr uint32_t kTokens = 32;

struct Measured {
  std::vector<bench::Row> rows;  // of kShort and kLong; none: not measured
  std::vector<int32_t> tokens;   // a greedy continuation
  kernels::Choice choice;        // of decode_layers; no operation: the family has no such kernel
};

Result<Measured> measure_lane(ModelFlags flags, const char* lane, bool only_if_used) {
  flags.load.lane = lane;
  flags.no_tuning = true;
  DP_TRY(Model model, load_for(flags, kLong.positions()));
  Measured out;
  for (const kernels::Choice& choice : Model::Impl::of(model).loaded->runner->choices()) {
    if (choice.operation == kOperation) out.choice = choice;
  }
  if (only_if_used && out.choice.variant != kPersistent) return out;
  DP_TRY(out.rows, bench::run_tests(model, {.tests = {kShort, kLong}, .repetitions = kRepetitions}, 0));
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = kTokens;
  options.ignore_eos = true;
  DP_TRY(const Generation generation, model.new_session().generate(std::vector<int32_t>{1}, options));
  out.tokens = generation.tokens;
  return out;
}

double seconds_of(const Measured& measured) {
  double seconds = 0;
  for (const bench::Row& row : measured.rows) seconds += 1 / bench::median(row.rates);
  return seconds;
}

// At every depth, in all repetitions.
bool is_faster(const Measured& one, const Measured& chain) {
  for (size_t i = 0; i < one.rows.size(); ++i) {
    if (std::ranges::min(one.rows[i].rates) <= kClearly * std::ranges::max(chain.rows[i].rates)) return false;
  }
  return true;
}

}  // namespace

Result<void> try_persistent(const ModelFlags& flags, gpu::AdapterType device, Tuned& tuned) {
  if (flags.load.lane != "fast" || device == gpu::AdapterType::kCpu) return {};
  bench::Attempt attempt{.operation = kOperation,
                         .from = "decode_layers.chain",
                         .to = kPersistent,
                         .phase = bench::Phase::kDecode};
  tuned.persistent = false;
  const auto one = measure_lane(flags, "persistent", /*only_if_used=*/true);
  if (!one || one->rows.empty()) {
    attempt.shape = one ? one->choice.shape : "";
    attempt.verdict = !one                           ? one.error().sentence()
                      : !one->choice.refused.empty() ? "not used: " + one->choice.refused.front().reason
                                                     : "not used: this family has no such kernel";
    tuned.result.attempts.push_back(std::move(attempt));
    return {};
  }
  DP_TRY(const Measured chain, measure_lane(flags, "fast", /*only_if_used=*/false));
  attempt.shape = one->choice.shape;
  attempt.seconds = seconds_of(*one);
  attempt.from_seconds = seconds_of(chain);
  attempt.ratio = attempt.seconds / attempt.from_seconds;
  const bool faster = is_faster(*one, chain);
  // Random weights have near ties, which two orders of summation decide differently.
  const bool says_the_same = !flags.synthetic.empty() || one->tokens == chain.tokens;
  attempt.kept = faster && says_the_same;
  attempt.verdict =
      format_text("%.1f %% %s", std::abs(1 - attempt.ratio) * 100, attempt.ratio < 1 ? "faster" : "slower");
  if (attempt.ratio < 1 && !faster) attempt.verdict += ", but not clearly at every depth";
  if (faster && !says_the_same) attempt.verdict += ", but its greedy tokens differ";
  tuned.persistent = attempt.kept;
  tuned.result.attempts.push_back(std::move(attempt));
  return {};
}

}  // namespace doppler::cli
