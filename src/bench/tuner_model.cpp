// Trials on a device: samples long enough to be measured, logits through both kinds of kernels.
#include "bench/tuner_model.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "bench/workload.h"
#include "kernels/linear/linear.h"

namespace doppler::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kDepth = 128, kDepthOfCpu = 16;  // tokens in the cache before the decode steps
constexpr uint32_t kMostSteps = 128;                // decode steps of a sample
constexpr double kSampleSeconds = 0.03;             // at least, if kMostSteps allow it
constexpr double kLongSample = 0.25;  // a prefill chunk that takes longer is measured with fewer rows
constexpr uint32_t kLeastRows = 32;
constexpr uint32_t kCheckedTokens = kernels::kMaxSkinnyRows + 4;  // whose logits are compared
// At a time: decode kernels, prefill kernels.
constexpr uint32_t kCheckedRows[] = {1, kCheckedTokens};
constexpr uint32_t kCheckedCtx = 64;

double tuner_seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

using TunedRunner = std::unique_ptr<model::DeviceModel>;

Result<TunedRunner> load_runner(gpu::Device& device, const formats::Checkpoint& checkpoint,
                                model::RunnerOptions options) {
  options.drafting = model::Drafting::kOff;  // steps of a token
  options.images = false;                    // the text's kernels
  return gpu::run_to_completion(device, model::DeviceModel::load(device, checkpoint, std::move(options), {}));
}

// Logits of kCheckedTokens tokens, `rows` at a time: 1 goes through the decode kernels, more through those of prefill.
Result<std::vector<float>> logits_of(gpu::Device& device, const formats::Checkpoint& checkpoint,
                                     model::RunnerOptions options, uint32_t rows) {
  options.ctx_len = std::min(options.ctx_len == 0 ? kCheckedCtx : options.ctx_len, kCheckedCtx);
  options.chunk = rows;
  options.all_logits = true;
  DP_TRY(const TunedRunner runner, load_runner(device, checkpoint, std::move(options)));
  const uint32_t at_once = runner->chunk();
  const std::vector<uint32_t> tokens = make_prompt(kCheckedTokens, runner->config().vocab_size, 7);
  std::vector<float> out;
  for (uint32_t pos = 0; pos < kCheckedTokens; pos += at_once) {
    const uint32_t count = std::min(at_once, kCheckedTokens - pos);
    auto evaluating = runner->logits(pos, std::span(tokens).subspan(pos, count));
    DP_TRY(const model::DeviceModel::Rows got, gpu::run_to_completion(device, std::move(evaluating)));
    out.insert(out.end(), got.logits.begin(), got.logits.end());
  }
  return out;
}

double relative_l2(std::span<const float> got, std::span<const float> wanted) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) {
    difference += (double{got[i]} - wanted[i]) * (double{got[i]} - wanted[i]);
    norm += double{wanted[i]} * wanted[i];
  }
  const double error = std::sqrt(difference / std::max(norm, 1e-30));
  // Infinities and NaN in the logits must fail every comparison with a bound.
  return got.size() == wanted.size() && std::isfinite(error) ? error : INFINITY;
}

// Logits to compare a candidate's with, made when first needed: by the portable lane, with weights as stored and the
// cache in f32.
class Wanted {
 public:
  Wanted(gpu::Device& device, const formats::Checkpoint& checkpoint, model::RunnerOptions options)
      : device_(device), checkpoint_(checkpoint), options_(std::move(options)) {}

  // Through the decode kernels and through those of prefill.
  Result<const std::vector<std::vector<float>>*> get() {
    if (!logits_.empty()) return &logits_;
    DP_TRY(options_.policy, kernels::make_policy("portable"));
    options_.cache_format = kernels::CacheFormat::kF32;
    for (const uint32_t rows : kCheckedRows) {
      auto logits = logits_of(device_, checkpoint_, options_, rows);
      if (!logits) {
        logits_.clear();
        return forward(std::move(logits).error());
      }
      logits_.push_back(std::move(*logits));
    }
    return &logits_;
  }

 private:
  gpu::Device& device_;
  const formats::Checkpoint& checkpoint_;
  model::RunnerOptions options_;
  std::vector<std::vector<float>> logits_;
};

constexpr uint32_t kTunerModelSlot = 0;

class ModelTrial final : public Trial {
 public:
  ModelTrial(gpu::Device& device, const formats::Checkpoint& checkpoint, model::RunnerOptions options,
             TunedRunner runner, Wanted& wanted)
      : device_(device),
        checkpoint_(checkpoint),
        options_(std::move(options)),
        runner_(std::move(runner)),
        wanted_(wanted) {}

  // GPU time of each variant's commands in both phases, once.
  Result<void> find_shares() {
    DP_CHECK(fill());
    DP_CHECK(find_shares(Phase::kDecode, runner_->decode_plan(true, 1), 1));
    const std::vector<uint32_t> tokens = prompt(std::min(runner_->chunk(), kLeastRows));
    const auto count = static_cast<uint32_t>(tokens.size());
    DP_CHECK(begin());
    DP_CHECK(runner_->one()->write_prompt({.tokens = tokens}));
    return find_shares(Phase::kPrefill, runner_->prefill_plan(count), count);
  }

  const std::vector<kernels::Choice>& choices() const override { return runner_->choices(); }

  double share(Phase phase, const std::string& variant) const override {
    const auto found = shares_.find({phase, variant});
    return found == shares_.end() ? 0 : found->second;
  }

  Result<double> seconds(Phase phase) override {
    if (phase == Phase::kPrefill) return prefill_seconds();
    DP_CHECK(fill());
    DP_TRY(double taken, decode(steps_));
    while (taken < kSampleSeconds && steps_ < kMostSteps) {  // the first sample finds its length
      steps_ = std::min(kMostSteps, steps_ * 2);
      DP_CHECK(fill());
      DP_TRY(taken, decode(steps_));
    }
    return taken / steps_;
  }

  Result<double> error() override {
    DP_TRY(const auto* wanted, wanted_.get());
    double worst = 0;
    size_t i = 0;
    for (const uint32_t rows : kCheckedRows) {
      DP_TRY(const std::vector<float> got, logits_of(device_, checkpoint_, options_, rows));
      worst = std::max(worst, relative_l2(got, (*wanted)[i++]));
    }
    return worst;
  }

 private:
  std::vector<uint32_t> prompt(uint32_t count) const {
    return make_prompt(count, runner_->config().vocab_size, 3);
  }

  Result<void> begin() {
    model::GenerationSettings generation;
    generation.ignore_stop = true;
    generation.max_tokens = runner_->ctx_len();
    return runner_->runner()->begin(kTunerModelSlot, generation, {});
  }

  Result<void> collect(model::Ticket ticket) {
    DP_TRY([[maybe_unused]] const std::vector<uint32_t> tokens,
           gpu::run_to_completion(device_, runner_->runner()->tokens(ticket)));
    return {};
  }

  // A cache with kDepth tokens (fewer in a small context); it samples from the last one.
  Result<void> fill() {
    DP_CHECK(begin());
    const uint32_t room = runner_->ctx_len() > kMostSteps + 1 ? runner_->ctx_len() - kMostSteps - 1 : 1;
    const std::vector<uint32_t> tokens =
        prompt(std::min(device_.caps().type == gpu::AdapterType::kCpu ? kDepthOfCpu : kDepth, room));
    for (size_t at = 0; at < tokens.size();) {
      const size_t count = std::min<size_t>(runner_->chunk(), tokens.size() - at);
      DP_CHECK(evaluate({.pos = static_cast<uint32_t>(at),
                         .tokens = std::span(tokens).subspan(at, count),
                         .sample = at + count == tokens.size()}));
      at += count;
    }
    return {};
  }

  Result<void> evaluate(const model::Piece& piece) {
    DP_TRY(const model::Ticket ticket, runner_->runner()->step({}, {&piece, 1}));
    return collect(ticket);
  }

  Result<double> decode(uint32_t steps) {
    const auto start = Clock::now();
    for (uint32_t done = 0; done < steps;) {
      const uint32_t left = steps - done;
      const model::DecodeSteps asked{.steps = std::min(left, model::kDefaultBatch * 2),
                                     .submits = std::max(1u, left / (model::kDefaultBatch * 2))};
      DP_TRY(const model::Ticket ticket, runner_->runner()->decode({&kTunerModelSlot, 1}, asked));
      DP_CHECK(collect(ticket));
      done += ticket.count;
    }
    return tuner_seconds_since(start);
  }

  Result<double> prefill_seconds() {
    if (rows_ == 0) rows_ = runner_->chunk();
    while (true) {
      const std::vector<uint32_t> tokens = prompt(rows_);
      DP_CHECK(begin());
      const auto start = Clock::now();
      DP_CHECK(evaluate({.tokens = tokens, .sample = true}));
      const double taken = tuner_seconds_since(start);
      if (taken <= kLongSample || rows_ <= kLeastRows) return taken / rows_;
      rows_ = std::max(kLeastRows, rows_ / 4);
    }
  }

  Result<void> find_shares(Phase phase, const gpu::Plan& plan, uint32_t rows) {
    if (!device_.caps().timestamps) {  // no order then, and no phase left out
      for (const gpu::PlanEntry& entry : plan.entries) shares_[{phase, entry.name}] = 1;
      return {};
    }
    DP_TRY(const std::vector<uint64_t> times,
           gpu::run_to_completion(device_, device_.time_commands(plan, rows)));
    double all = 0;
    for (const uint64_t time : times) all += static_cast<double>(time);
    for (size_t i = 0; i < times.size(); ++i) {
      // Never 0 for a variant that is there, however coarse the clock.
      shares_[{phase, plan.entries[i].name}] +=
          std::max(1e-9, static_cast<double>(times[i]) / std::max(all, 1.0));
    }
    return {};
  }

  gpu::Device& device_;
  const formats::Checkpoint& checkpoint_;
  model::RunnerOptions options_;
  TunedRunner runner_;
  Wanted& wanted_;
  std::map<std::pair<Phase, std::string>, double> shares_;
  uint32_t steps_ = 16;  // of a decode sample
  uint32_t rows_ = 0;    // of a prefill sample
};

model::RunnerOptions of_few_layers(model::RunnerOptions options, const formats::Checkpoint& checkpoint) {
  options.layers = layers_that_differ(checkpoint);
  return options;
}

class ModelTrials final : public TrialMaker {
 public:
  ModelTrials(gpu::Device& device, const formats::Checkpoint& checkpoint, model::RunnerOptions options)
      : device_(device),
        checkpoint_(checkpoint),
        options_(of_few_layers(std::move(options), checkpoint)),
        wanted_(device, checkpoint, options_) {}

  Result<std::unique_ptr<Trial>> load(const kernels::TuningTable& table) override {
    model::RunnerOptions options = options_;
    options.policy.tuning = std::make_shared<const kernels::TuningTable>(table);
    DP_TRY(TunedRunner runner, load_runner(device_, checkpoint_, options));
    auto trial =
        std::make_unique<ModelTrial>(device_, checkpoint_, std::move(options), std::move(runner), wanted_);
    DP_CHECK(trial->find_shares());
    return trial;
  }

 private:
  gpu::Device& device_;
  const formats::Checkpoint& checkpoint_;
  model::RunnerOptions options_;
  Wanted wanted_;
};

}  // namespace

uint32_t layers_that_differ(const formats::Checkpoint& checkpoint) {
  std::set<std::string> seen;
  uint32_t layers = 1;
  // "blk.12.ffn_down.weight" and "model.layers.12.mlp.down_proj.weight": the number names the layer.
  for (uint32_t layer = 0;; ++layer) {
    bool any = false;
    for (const formats::TensorInfo& tensor : checkpoint.tensors()) {
      std::string kind;
      bool of_layer = false;
      for (const std::string& part : split(tensor.name, '.')) {
        const bool number = !of_layer && part == std::to_string(layer);
        of_layer = of_layer || number;
        kind += (number ? std::string("*") : part) + ".";
      }
      if (!of_layer) continue;
      any = true;
      kind += format_text(" %d", static_cast<int>(tensor.type));
      for (const uint64_t extent : tensor.shape)
        kind += format_text(" %llu", static_cast<unsigned long long>(extent));
      if (seen.insert(std::move(kind)).second) layers = layer + 1;
    }
    if (!any) return layers;
  }
}

std::unique_ptr<TrialMaker> model_trials(gpu::Device& device, const formats::Checkpoint& checkpoint,
                                         model::RunnerOptions options) {
  return std::make_unique<ModelTrials>(device, checkpoint, std::move(options));
}

}  // namespace doppler::bench
