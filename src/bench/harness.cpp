#include "bench/harness.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/trace.h"

namespace doppler::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Deterministic tokens that do not repeat soon, so that nothing can be cached by content.
std::vector<uint32_t> make_prompt(uint32_t count, uint32_t vocab_size, uint32_t salt) {
  std::vector<uint32_t> tokens(count);
  uint64_t state = 0x9E3779B97F4A7C15ull * (salt + 1);
  for (uint32_t& token : tokens) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;  // Knuth, MMIX
    token = static_cast<uint32_t>((state >> 33) % vocab_size);
  }
  return tokens;
}

struct Sample {
  double rate = 0, ttft = 0;
};

class Runner {
 public:
  Runner(Model& model, uint32_t batch) : impl_(model.impl()), steps_(*impl_.loaded->runner), batch_(batch) {}

  Result<Sample> once(const Test& test, uint32_t salt) {
    model::GenerationSettings settings;
    settings.greedy = true;
    settings.ignore_stop = true;
    settings.max_tokens = std::max(1u, test.generate);
    impl_.resident.clear();
    const std::vector<uint32_t> before = make_prompt(test.depth, impl_.info.vocab_size, salt);
    DP_CHECK(steps_.begin(settings, {}));
    DP_CHECK(evaluate(before, /*sample=*/false));
    DP_CHECK(gpu::run_to_completion(*impl_.device, impl_.device->idle()));

    // A test that only generates starts from one token; its evaluation is not counted.
    const std::vector<uint32_t> prompt = make_prompt(std::max(1u, test.prompt), impl_.info.vocab_size, salt + 1000);
    const auto start = Clock::now();
    DP_CHECK(evaluate(prompt, /*sample=*/true));
    DP_CHECK(queue(test.generate));
    DP_CHECK(collect());
    const double first = seconds_since(start);
    while (!in_flight_.empty()) {
      DP_CHECK(queue(test.generate));
      DP_CHECK(collect());
    }
    const double all = seconds_since(start);
    Sample sample{.ttft = test.prompt == 0 ? 0 : first};
    if (test.generate == 0) sample.rate = test.prompt / first;
    else if (test.prompt == 0) sample.rate = (test.generate - 1) / (all - first);
    else sample.rate = (test.prompt + test.generate) / all;
    return sample;
  }

 private:
  Result<void> evaluate(std::span<const uint32_t> tokens, bool sample) {
    for (size_t at = 0; at < tokens.size();) {
      const size_t count = std::min<size_t>(steps_.chunk(), tokens.size() - at);
      const bool last = sample && at + count == tokens.size();
      DP_TRY(const model::Ticket ticket, steps_.prefill(tokens.subspan(at, count), last));
      if (last) in_flight_.push_back(ticket);
      at += count;
    }
    scheduled_ = 1;
    return {};
  }

  Result<void> queue(uint32_t wanted) {
    while (in_flight_.size() < steps_.max_tickets() && scheduled_ < wanted) {
      DP_TRY(const model::Ticket ticket, steps_.decode(std::min(batch_, wanted - scheduled_)));
      scheduled_ += ticket.count;
      in_flight_.push_back(ticket);
    }
    return {};
  }

  Result<void> collect() {
    const model::Ticket ticket = in_flight_.front();
    in_flight_.pop_front();
    DP_TRY([[maybe_unused]] const std::vector<uint32_t> tokens,
           gpu::run_to_completion(*impl_.device, steps_.tokens(ticket)));
    return {};
  }

  Model::Impl& impl_;
  model::PlanRunner& steps_;
  uint32_t batch_;
  uint32_t scheduled_ = 0;
  std::deque<model::Ticket> in_flight_;
};

double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// What one decode step reads and writes in GPU memory, as its plan says.
uint64_t step_bytes(Model& model) {
  uint64_t bytes = 0;
  for (const gpu::PlanEntry& entry : model.impl().loaded->runner->decode_plan(/*greedy=*/true).entries) {
    bytes += entry.bytes + entry.fixed_bytes;
  }
  return bytes;
}

Result<void> check(const Test& test, const Model& model) {
  const uint64_t positions = static_cast<uint64_t>(test.depth) + std::max(1u, test.prompt) + test.generate;
  if (test.prompt == 0 && test.generate < 2) {
    return fail(ErrorKind::kInvalidInput, "Test %s measures nothing: a prompt or at least 2 generated tokens are needed.",
                test.name().c_str());
  }
  if (positions > model.info().ctx_len) {
    return fail(ErrorKind::kInvalidInput, "Test %s needs %llu positions; the context holds %u (--ctx).", test.name().c_str(),
                static_cast<unsigned long long>(positions), model.info().ctx_len);
  }
  return {};
}

}  // namespace

const char* intent_name(Intent intent) { return intent == Intent::kCalibrate ? "calibrate" : "investigate"; }

std::string Test::name() const {
  std::string name;
  if (prompt != 0) name = format_text("pp%u", prompt);
  if (generate != 0) name += format_text("%stg%u", name.empty() ? "" : "+", generate);
  if (depth != 0) name += format_text(" @ d%u", depth);
  return name;
}

double Row::median() const { return middle(rates); }
double Row::mean() const {
  return rates.empty() ? 0 : std::accumulate(rates.begin(), rates.end(), 0.0) / static_cast<double>(rates.size());
}
double Row::stddev() const {
  if (rates.size() < 2) return 0;
  double sum = 0;
  for (const double rate : rates) sum += (rate - mean()) * (rate - mean());
  return std::sqrt(sum / static_cast<double>(rates.size() - 1));
}
double Row::least() const { return rates.empty() ? 0 : *std::ranges::min_element(rates); }
double Row::most() const { return rates.empty() ? 0 : *std::ranges::max_element(rates); }

Result<std::vector<Row>> run_tests(Model& model, const Settings& settings, double read_bandwidth) {
  if (settings.intent == Intent::kCalibrate && is_tracing()) {
    return fail(ErrorKind::kInvalidInput,
                "Calibration runs never trace: leave out --trace, or say --intent investigate (not to be quoted).");
  }
  for (const Test& test : settings.tests) DP_CHECK(check(test, model));
  const gpu::Counters& counters = model.impl().device->counters();
  std::vector<Row> rows;
  for (size_t i = 0; i < settings.tests.size(); ++i) {
    Row row{.test = settings.tests[i]};
    std::vector<double> ttfts;
    gpu::Counters before;
    for (uint32_t repetition = 0; repetition < settings.warmups + settings.repetitions; ++repetition) {
      const bool counted = repetition >= settings.warmups;
      if (settings.progress) settings.progress(i, counted ? repetition - settings.warmups + 1 : 0);
      before = counters;
      Runner runner(model, settings.batch);
      DP_TRY(const Sample sample, runner.once(row.test, repetition));
      if (!counted) continue;
      row.rates.push_back(sample.rate);
      ttfts.push_back(sample.ttft);
    }
    // Of the last repetition; all are alike, since nothing but the replay happens.
    const double tokens = row.test.prompt + row.test.generate;
    row.ttft_seconds = middle(ttfts);
    row.submits_per_token = static_cast<double>(counters.submits - before.submits) / tokens;
    row.readback_bytes_per_token = static_cast<double>(counters.readback_bytes - before.readback_bytes) / tokens;
    row.dispatches_per_token = static_cast<double>(counters.dispatches - before.dispatches) / tokens;
    row.host_us_per_token = static_cast<double>(counters.submit_ns - before.submit_ns) / 1000 / tokens;
    row.objects_created = counters.buffers_created + counters.bind_groups_created + counters.pipelines_created -
                          before.buffers_created - before.bind_groups_created - before.pipelines_created;
    if (read_bandwidth > 0 && row.test.prompt == 0) {
      row.bandwidth_fraction = row.median() * static_cast<double>(step_bytes(model)) / read_bandwidth;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace doppler::bench
