#include "bench/harness.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include "base/log.h"
#include "base/trace.h"
#include "bench/plan_costs.h"
#include "bench/statistics.h"
#include "bench/streams.h"
#include "engine/model_options.h"
#include "engine/paging_report.h"
#include "engine/tuning.h"

namespace doppler::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr uint32_t kSlot = 0;

struct Sample {
  double rate = 0, ttft = 0;
  gpu::Counters before;  // when the clock started
};

class Runner {
 public:
  Runner(Model& model, Cadence cadence)
      : impl_(model.impl()), steps_(*impl_.loaded->runner->runner()), cadence_(cadence) {
    if (cadence_.batch == 0) cadence_.batch = engine::default_batch(*impl_.loaded);
  }

  // The tokens before the test are the same in each repetition: the next one goes on from them, as far as the cache
  // can.
  Result<Sample> once(const Test& test, uint32_t salt) {
    model::GenerationSettings settings;
    settings.greedy = true;
    settings.ignore_stop = true;
    settings.max_tokens = steps_.ctx_len();  // the loop below ends, not the device
    const std::vector<uint32_t> before = make_prompt(test.depth, impl_.info.vocab_size, /*salt=*/0);
    const uint32_t kept = is_filled_ && test.depth > 0 ? steps_.continues_from(test.depth) : 0;
    is_filled_ = false;
    DP_CHECK(steps_.begin(kSlot, settings, std::span(before).first(kept)));
    DP_CHECK(evaluate(std::span(before).subspan(kept), kept, /*sample=*/false));
    while (!in_flight_.empty()) DP_CHECK(collect());
    is_filled_ = true;

    // A test that only generates starts from one token; its evaluation is not counted.
    const std::vector<uint32_t> prompt =
        make_prompt(std::max(1u, test.prompt), impl_.info.vocab_size, salt + 1000);
    const gpu::Counters before_start = impl_.device->counters();
    const auto start = Clock::now();
    DP_CHECK(evaluate(prompt, test.depth, /*sample=*/true));
    while (in_flight_.front().count == 0) DP_CHECK(collect());
    // Queues one submit ahead and no more: while the host records, the device would already decode, in time that is not
    // counted.
    DP_CHECK(queue(test.generate, std::min(2u, steps_.max_tickets()), 1));
    DP_CHECK(collect());
    const double first = seconds_since(start);
    while (scheduled_ < test.generate || !in_flight_.empty()) {
      DP_CHECK(queue(test.generate, steps_.max_tickets(), cadence_.readback_interval));
      DP_CHECK(collect());
    }
    const double all = seconds_since(start);
    Sample sample{.ttft = test.prompt == 0 ? 0 : first, .before = before_start};
    if (test.generate == 0)
      sample.rate = test.prompt / first;
    else if (test.prompt == 0)
      sample.rate = (test.generate - 1) / (all - first);
    else
      sample.rate = (test.prompt + test.generate) / all;
    return sample;
  }

  const model::DraftTally& drafts() const { return drafts_; }

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
      const model::DecodeSteps asked{
          .steps = steps, .submits = std::min(submits, left / steps), .drafts = steps_.can_draft(kSlot)};
      DP_TRY(const model::Ticket ticket, steps_.decode({&kSlot, 1}, asked));
      scheduled_ += ticket.count;
      in_flight_.push_back(ticket);
    }
    return {};
  }

  Result<void> collect() {
    const model::Ticket ticket = in_flight_.front();
    in_flight_.pop_front();
    DP_TRY(const std::vector<uint32_t> tokens, gpu::run_to_completion(*impl_.device, steps_.tokens(ticket)));
    scheduled_ -= static_cast<uint32_t>(std::ranges::count(tokens, kernels::kRejected));
    if (ticket.drafts) drafts_.add(tokens);
    return {};
  }

  Model::Impl& impl_;
  model::SequenceRunner& steps_;
  Cadence cadence_;
  model::DraftTally drafts_;
  bool is_filled_ = false;  // with what lies before the test
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

Result<Row> run_alone(Model& model, const Settings& settings, size_t number, double read_bandwidth) {
  const gpu::Counters& counters = model.impl().device->counters();
  Row row{.test = settings.tests[number]};
  std::vector<double> ttfts;
  gpu::Counters before;
  const ExpertPaging paging_before = engine::paging_of(*model.impl().loaded);
  Runner runner(model, settings.cadence);
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
  row.objects_created = counters.buffers_created + counters.bind_groups_created + counters.pipelines_created -
                        before.buffers_created - before.bind_groups_created - before.pipelines_created;
  row.experts = engine::paging_since(paging_before, engine::paging_of(*model.impl().loaded));
  row.drafts = runner.drafts();
  if (read_bandwidth > 0 && row.test.prompt == 0) {
    // The step in the middle of the test.
    const StepShape shape{.depth = row.test.depth + row.test.generate / 2};
    const gpu::Plan& plan = model.impl().loaded->runner->decode_plan(/*greedy=*/true, shape.depth + 1);
    row.bandwidth_fraction = checked_fraction(
        median(row.rates) * static_cast<double>(total_bytes(plan, shape)) / read_bandwidth, row.test.name());
  }
  if (settings.intent == Intent::kInvestigate && row.test.prompt == 0 &&
      model.impl().device->caps().timestamps) {
    DP_TRY(row.gpu_seconds, Runner(model, settings.cadence).gpu_step(row.test));
  }
  return row;
}

Result<Row> run_streams(Model& model, const Settings& settings, size_t number) {
  Row row{.test = settings.tests[number]};
  std::vector<double> token_seconds, longest_waits;
  DP_CHECK(repeat(settings, number, [&](uint32_t, bool counted) -> Result<void> {
    DP_TRY(const StreamFigures figures, time_streams(model, row.test));
    if (!counted) return {};
    row.rates.push_back(figures.rate);
    token_seconds.push_back(figures.token_seconds);
    longest_waits.push_back(figures.longest_wait);
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
