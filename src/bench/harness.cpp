#include "bench/harness.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "base/trace.h"
#include "bench/plan_costs.h"
#include "bench/statistics.h"
#include "bench/streams.h"
#include "engine/model_options.h"
#include "engine/paging_report.h"
#include "engine/scheduler/draft_policy.h"
#include "engine/scheduler/text_index.h"
#include "engine/tuning.h"
#include "gpu/objects_made.h"
#include "kernels/step/draft_text.h"

namespace doppler::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr uint32_t kSlot = 0;

struct Sample {
  double rate = 0, ttft = 0;
  double step_seconds = 0;  // of the steps that generate
  gpu::Counters before;     // when the clock started
};

class Runner {
 public:
  Runner(Model& model, const Settings& settings)
      : impl_(Model::Impl::of(model)), steps_(*impl_.loaded->runner->runner()), cadence_(settings.cadence) {
    const model::DeviceModel& runner = *impl_.loaded->runner;
    if (cadence_.batch == 0) cadence_.batch = engine::default_batch(*impl_.loaded);
    settings_.greedy = true;
    settings_.ignore_stop = true;
    settings_.drafter = model::drafter_of(runner.options().drafting, {.next_layer = runner.has_drafts()});
  }
  // Makes the plans of steps that draft, before the first once().
  Result<void> prepare() {
    const model::DraftNeed need = draft_need_of(settings_);
    while (steps_.may_prepare_drafts(need, 1))
      DP_CHECK(gpu::run_to_completion(*impl_.device, steps_.prepare_drafts(need, 1)));
    return {};
  }
  std::span<const uint32_t> draft_rows() const { return steps_.draft_rows(draft_need_of(settings_)); }
  // Sets the rows of each step from now on. 0: as many as pay.
  void set_rows(uint32_t rows) { rows_ = rows; }

  // Writes the answer of the test once, without drafts. Later answers to the same prompt have it as their prediction,
  // with one token of each `edits` changed.
  Result<void> learn_answer(const Test& test, uint32_t edits) {
    set_rows(1);
    keeps_answer_ = true;
    DP_TRY([[maybe_unused]] const Sample sample, once(test, 0));
    keeps_answer_ = false;
    set_rows(0);
    for (size_t i = edits - 1; i < answer_.size(); i += edits)
      answer_[i] = (answer_[i] + 1) % impl_.info.vocab_size;
    settings_.prediction = std::exchange(answer_, {});
    return {};
  }

  // The tokens before the test are the same in each repetition: the next one goes on from them, as far as the cache
  // can.
  Result<Sample> once(const Test& test, uint32_t salt) {
    model::GenerationSettings settings = settings_;
    settings.max_tokens = steps_.ctx_len();  // the loop below ends, not the device
    policy_ = engine::DraftPolicy(engine::DraftUse::kWhereFaster);
    index_ = engine::TextIndex();
    index_.add(settings_.prediction);
    fresh_.clear();
    const std::vector<uint32_t> before = make_prompt(test.depth, impl_.info.vocab_size, /*salt=*/0);
    const uint32_t kept = is_filled_ && test.depth > 0 ? steps_.continues_from(test.depth) : 0;
    is_filled_ = false;
    DP_CHECK(steps_.begin(kSlot, settings, std::span(before).first(kept)));
    DP_CHECK(evaluate(std::span(before).subspan(kept), kept, /*sample=*/false));
    while (!in_flight_.empty()) DP_CHECK(collect());
    is_filled_ = true;

    // A test that only generates starts from one token; its evaluation is not counted.
    const std::vector<uint32_t> prompt =
        make_prompt(std::max(1u, test.prompt), impl_.info.vocab_size,
                    settings_.prediction.empty() ? salt + 1000 : 1000);  // the prompt of the prediction
    index_.add(before);
    index_.add(prompt);
    const gpu::Counters before_start = impl_.device->counters();
    const auto start = Clock::now();
    DP_CHECK(evaluate(prompt, test.depth, /*sample=*/true));
    while (in_flight_.front().count == 0) DP_CHECK(collect());
    // Nothing is queued before the first token has come: the device would decode in time that is not counted.
    DP_CHECK(collect());
    const double first = seconds_since(start);
    collected_ = steps_done_ = 0;
    while (scheduled_ < test.generate || !in_flight_.empty()) {
      DP_CHECK(queue(test.generate, steps_.max_tickets(), cadence_.readback_interval));
      DP_CHECK(collect());
    }
    const double all = seconds_since(start);
    Sample sample{.ttft = test.prompt == 0 ? 0 : first, .before = before_start};
    if (steps_done_ != 0) sample.step_seconds = (all - first) / steps_done_;
    if (test.generate == 0)
      sample.rate = test.prompt / first;
    else if (test.prompt == 0)
      sample.rate = collected_ / (all - first);
    else
      sample.rate = (test.prompt + 1 + collected_) / all;
    return sample;
  }

  const model::DraftTally& drafts() const { return drafts_; }
  void forget_drafts() { drafts_ = {}; }

  // GPU time of a decode step among those of `test`.
  Result<double> gpu_step(const Test& test) {
    const uint32_t steps = test.generate - 1;
    DP_TRY([[maybe_unused]] const Sample sample, once({.prompt = 0, .generate = 1, .depth = test.depth}, 0));
    auto timing = impl_.device->time_replays(
        impl_.loaded->runner->decode_plan(/*greedy=*/true, test.depth + test.generate), 1, steps);
    DP_TRY(const uint64_t ns, gpu::run_to_completion(*impl_.device, std::move(timing)));
    return static_cast<double>(ns) / 1e9 / steps;
  }

 private:
  // `pos`: the first token's position. With `sample` the last one chooses a token.
  Result<void> evaluate(std::span<const uint32_t> tokens, uint32_t pos, bool sample) {
    for (size_t at = 0; at < tokens.size();) {
      if (in_flight_.size() == steps_.max_tickets()) DP_CHECK(collect());
      const size_t count = std::min<size_t>(steps_.max_rows(), tokens.size() - at);
      const bool is_last = at + count == tokens.size();
      const model::Piece piece{.slot = kSlot,
                               .pos = pos + static_cast<uint32_t>(at),
                               .tokens = tokens.subspan(at, count),
                               .sample = is_last && sample,
                               .next = is_last ? tokens.front() : tokens[at + count]};
      DP_TRY(const model::Ticket ticket, steps_.step({}, {&piece, 1}));
      in_flight_.push_back(ticket);
      at += count;
    }
    scheduled_ = 1;
    return {};
  }

  // Up to `most` tickets in flight, each for so many submits.
  Result<void> queue(uint32_t wanted, size_t most, uint32_t submits) {
    while (in_flight_.size() < most && scheduled_ < wanted) {
      const uint32_t left = wanted - scheduled_;
      const uint32_t steps = std::min(cadence_.batch, left);
      const model::DecodeSteps asked = choose(steps, std::min(submits, left / steps));
      DP_TRY(const model::Ticket ticket, steps_.decode({&kSlot, 1}, asked));
      scheduled_ += ticket.count;
      in_flight_.push_back(ticket);
    }
    return {};
  }

  model::DecodeSteps choose(uint32_t steps, uint32_t submits) {
    if (rows_ == 1 || draft_rows().empty()) return {.steps = steps, .submits = submits};
    if (rows_ != 0) return {.steps = steps, .rows = rows_};
    const engine::DraftSteps chosen = policy_.choose(draft_rows(), costs_, steps * submits, finds_drafts());
    if (chosen.rows == 1 && chosen.steps == steps * submits) return {.steps = steps, .submits = submits};
    return {.steps = chosen.steps, .rows = chosen.rows};
  }

  // As the scheduler does: the host follows the drafter lookup in the tokens that it knows.
  bool finds_drafts() {
    if (settings_.drafter != model::Drafter::kLookup) return true;
    const engine::Guesses guesses = index_.add(std::exchange(fresh_, {}));
    policy_.foresee(guesses.right, guesses.wrong);
    return index_.repeats();
  }

  Result<void> collect() {
    const model::Ticket ticket = in_flight_.front();
    in_flight_.pop_front();
    DP_TRY(const std::vector<uint32_t> tokens, gpu::run_to_completion(*impl_.device, steps_.tokens(ticket)));
    const double took = seconds_since(std::exchange(collected_at_, Clock::now()));
    const auto left_out = static_cast<uint32_t>(std::ranges::count_if(tokens, kernels::is_left_out));
    scheduled_ -= left_out;
    collected_ += ticket.count - left_out;
    steps_done_ += ticket.count / ticket.rows;
    const engine::DraftOutcome outcome = engine::outcome_of(ticket.rows, tokens);
    if (ticket.count != 0 && steps_done_ != 0) costs_.note(ticket.rows, outcome.steps, took);
    policy_.note(outcome, costs_);
    if (ticket.rows > 1) drafts_.add(tokens, ticket.rows);
    std::ranges::copy_if(tokens, std::back_inserter(fresh_),
                         [](uint32_t t) { return !kernels::is_left_out(t); });
    if (keeps_answer_) answer_.insert(answer_.end(), tokens.begin(), tokens.end());
    return {};
  }

  Model::Impl& impl_;
  model::SequenceRunner& steps_;
  Cadence cadence_;
  model::GenerationSettings settings_;
  uint32_t rows_ = 0;
  engine::DraftPolicy policy_;
  engine::StepCosts costs_;
  engine::TextIndex index_;
  std::vector<uint32_t> fresh_;  // tokens that are not in the index
  model::DraftTally drafts_;
  uint32_t collected_ = 0, steps_done_ = 0;  // tokens after the first, and the steps that gave them
  Clock::time_point collected_at_;
  bool is_filled_ = false;  // with what lies before the test
  bool keeps_answer_ = false;
  std::vector<uint32_t> answer_;
  uint32_t scheduled_ = 0;
  std::deque<model::Ticket> in_flight_;
};

// Warm-ups and counted runs of one test, in order.
Result<void> repeat(const Settings& settings, size_t test,
                    const std::function<Result<void>(uint32_t repetition, bool counted)>& run) {
  for (uint32_t repetition = 0; repetition < settings.warmups + settings.repetitions; ++repetition) {
    const bool counted = repetition >= settings.warmups;
    if (settings.progress) settings.progress(test, counted ? repetition - settings.warmups + 1 : 0);
    DP_CHECK(run(repetition, counted));
  }
  return {};
}

// Times steps of each number of rows.
Result<void> time_steps(Runner& runner, const Settings& settings, Row& row) {
  if (row.test.prompt != 0 || runner.draft_rows().empty()) return {};
  std::vector<uint32_t> kinds = {1};
  kinds.insert(kinds.end(), runner.draft_rows().begin(), runner.draft_rows().end());
  for (const uint32_t rows : kinds) {
    runner.set_rows(rows);
    std::vector<double> seconds;
    for (uint32_t repetition = 0; repetition < settings.warmups + settings.repetitions; ++repetition) {
      DP_TRY(const Sample sample, runner.once(row.test, repetition));
      if (repetition >= settings.warmups) seconds.push_back(sample.step_seconds);
    }
    row.step_times.push_back({.rows = rows, .seconds = median(seconds)});
  }
  runner.set_rows(0);
  runner.forget_drafts();
  return {};
}

Result<Row> run_alone(Model& model, const Settings& settings, size_t number, double read_bandwidth) {
  const gpu::Counters& counters = Model::Impl::of(model).device->counters();
  Row row{.test = settings.tests[number]};
  std::vector<double> ttfts;
  gpu::Counters before;
  const ExpertPaging paging_before = engine::paging_of(*Model::Impl::of(model).loaded);
  Runner runner(model, settings);
  DP_CHECK(runner.prepare());
  if (settings.draft_edits != 0 && !runner.draft_rows().empty())
    DP_CHECK(runner.learn_answer(row.test, settings.draft_edits));
  DP_CHECK(time_steps(runner, settings, row));
  DP_CHECK(repeat(settings, number, [&](uint32_t repetition, bool counted) -> Result<void> {
    DP_TRY(const Sample sample, runner.once(row.test, repetition));
    before = sample.before;
    if (!counted) return {};
    row.rates.push_back(sample.rate);
    ttfts.push_back(sample.ttft);
    return {};
  }));
  // Figures of the last repetition; all are alike, since nothing but the replay happens.
  const double tokens = row.test.prompt + row.test.generate;
  row.ttft_seconds = median(ttfts);
  row.submits_per_token = static_cast<double>(counters.submits - before.submits) / tokens;
  row.readback_bytes_per_token =
      static_cast<double>(counters.readback_bytes - before.readback_bytes) / tokens;
  row.dispatches_per_token = static_cast<double>(counters.dispatches - before.dispatches) / tokens;
  row.host_us_per_token = static_cast<double>(counters.submit_ns - before.submit_ns) / 1000 / tokens;
  row.objects_created = gpu::objects_made(counters) - gpu::objects_made(before);
  row.experts = engine::paging_since(paging_before, engine::paging_of(*Model::Impl::of(model).loaded));
  row.drafts = runner.drafts();
  if (read_bandwidth > 0 && row.test.prompt == 0) {
    // The step in the middle of the test.
    const StepShape shape{.depth = row.test.depth + row.test.generate / 2};
    const gpu::Plan& plan =
        Model::Impl::of(model).loaded->runner->decode_plan(/*greedy=*/true, shape.depth + 1);
    row.bandwidth_fraction = checked_fraction(
        median(row.rates) * static_cast<double>(total_bytes(plan, shape)) / read_bandwidth, row.test.name());
  }
  if (settings.intent == Intent::kInvestigate && row.test.prompt == 0 &&
      Model::Impl::of(model).device->caps().timestamps) {
    DP_TRY(row.gpu_seconds, Runner(model, settings).gpu_step(row.test));
  }
  return row;
}

Result<Row> run_streams(Model& model, const Settings& settings, size_t number) {
  Row row{.test = settings.tests[number]};
  std::vector<double> token_seconds, longest_waits;
  DP_CHECK(repeat(settings, number, [&](uint32_t, bool counted) -> Result<void> {
    DP_TRY(const StreamFigures figures, time_streams(model, row.test, settings.draft_edits));
    if (!counted) return {};
    row.rates.push_back(figures.rate);
    token_seconds.push_back(figures.token_seconds);
    longest_waits.push_back(figures.longest_wait);
    row.drafts.drafted += figures.drafts.drafted;
    row.drafts.accepted += figures.drafts.accepted;
    return {};
  }));
  row.token_seconds = median(token_seconds);
  row.longest_wait_seconds = median(longest_waits);
  return row;
}

}  // namespace

const char* intent_name(Intent intent) { return intent == Intent::kCalibrate ? "calibrate" : "investigate"; }

double Row::wall_over_gpu() const {
  const double rate = median(rates);
  return gpu_seconds > 0 && rate > 0 ? 1 / rate / gpu_seconds : 0;
}

double checked_fraction(double fraction, const std::string& test) {
  if (fraction <= 1) return fraction;
  log(LogLevel::kWarning,
      "Test %s reads %.2f times what this device was measured to read: the ceiling is too low, and no share "
      "is given.",
      test.c_str(), fraction);
  return 0;
}

Result<std::vector<Row>> run_tests(Model& model, const Settings& settings, double read_bandwidth) {
  if (settings.intent == Intent::kCalibrate && is_tracing()) {
    return fail(
        ErrorKind::kInvalidInput,
        "Calibration runs never trace: leave out --trace, or say --intent investigate (not to be quoted).");
  }
  DP_CHECK(check_context(settings.tests, model.info().ctx_len));
  std::vector<Row> rows;
  for (size_t i = 0; i < settings.tests.size(); ++i) {
    auto row = settings.tests[i].streams == 0 ? run_alone(model, settings, i, read_bandwidth)
                                              : run_streams(model, settings, i);
    if (!row) return forward(std::move(row).error());
    if (settings.on_row) DP_CHECK(settings.on_row(*row));
    rows.push_back(std::move(*row));
  }
  return rows;
}

}  // namespace doppler::bench
