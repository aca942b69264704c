// doppler squeeze: the whole loop on one model. Measure, sweep the cadence, profile, tune, measure again, check that
// the model still says the same, report. Nothing is stored unless the check passes. Judgements: bench/squeeze.h.
#include "bench/squeeze.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "bench/profile_report.h"
#include "bench/statistics.h"
#include "cli/measure.h"
#include "cli/tune.h"
#include "cli/verbs.h"
#include "engine/tuning.h"
#include "engine/tuning_file_native.h"

namespace doppler::cli {
namespace {

constexpr uint32_t kBatches[] = {1, 2, 4, 8, 16, 32, 64, 128};
constexpr uint32_t kIntervals[] = {2, 4};
constexpr uint32_t kSweepRepetitions = 3;
constexpr uint32_t kGoldenTokens = 64, kGoldenPrompt = 16;

struct SqueezeFlags {
  ModelFlags model;
  bench::TestLists lists;
  uint32_t repetitions = 5, budget = 120;
  bool json = false;
  std::string output;
};

void say(const char* what) {
  if (stderr_is_terminal()) std::fprintf(stderr, "\r\033[K%s", what);
}

ModelFlags with_tuning(const ModelFlags& flags, bool tuned) {
  ModelFlags out = flags;
  out.no_tuning = !tuned;
  return out;
}

// One greedy continuation and the logits of its prompt, by both kinds of kernels.
struct Golden {
  std::vector<int32_t> tokens;
  std::vector<float> logits;
};

Result<std::vector<float>> logits(ModelFlags flags, std::span<const uint32_t> prompt) {
  std::vector<float> out;
  for (const uint32_t rows : {1u, kGoldenPrompt}) {
    flags.load.chunk = rows;
    DP_TRY(Model model, load_named_model(flags, {.all_logits = true}));
    model::DeviceModel& runner = *Model::Impl::of(model).loaded->runner;
    for (uint32_t pos = 0; pos < prompt.size(); pos += runner.chunk()) {
      const size_t count = std::min<size_t>(runner.chunk(), prompt.size() - pos);
      auto evaluating = runner.logits(pos, prompt.subspan(pos, count));
      DP_TRY(const model::DeviceModel::Rows got,
             gpu::run_to_completion(*Model::Impl::of(model).device, std::move(evaluating)));
      out.insert(out.end(), got.logits.begin(), got.logits.end());
    }
  }
  return out;
}

double relative_l2(std::span<const float> got, std::span<const float> wanted) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < wanted.size() && i < got.size(); ++i) {
    difference += (double{got[i]} - wanted[i]) * (double{got[i]} - wanted[i]);
    norm += double{wanted[i]} * wanted[i];
  }
  return got.size() == wanted.size() && norm > 0 ? std::sqrt(difference / norm) : INFINITY;
}

class Squeeze {
 public:
  explicit Squeeze(const SqueezeFlags& flags) : flags_(flags) {}

  Result<bench::SqueezeReport> run() {
    DP_TRY(settings_.tests, bench::make_tests(flags_.lists));
    settings_.repetitions = flags_.repetitions;
    profile_.prompt = flags_.lists.prompts.empty() ? 0 : flags_.lists.prompts.front();
    positions_ =
        std::max<uint64_t>(bench::positions_needed(settings_.tests), bench::positions_needed(profile_));
    DP_CHECK(first_look());
    bench::GateInputs gate{.synthetic = report_.facts.synthetic};
    DP_TRY(const Golden before, golden(/*tuned=*/false));
    DP_CHECK(tune_and_store());
    DP_CHECK(second_look());
    DP_TRY(const Golden after, golden(/*tuned=*/true));
    DP_TRY(const std::vector<float> portable, portable_logits());
    gate.tokens_before = before.tokens;
    gate.tokens_after = after.tokens;
    gate.error_before = relative_l2(before.logits, portable);
    gate.error_after = relative_l2(after.logits, portable);
    report_.gate = bench::judge(gate);
    if (!report_.gate.passed) DP_CHECK(put_back());
    list_commands();
    return std::move(report_);
  }

 private:
  Result<Model> load(bool tuned) { return load_for(with_tuning(flags_.model, tuned), positions_); }

  Result<std::vector<bench::Row>> measure(Model& model, bench::Cadence cadence) {
    bench::Settings settings = settings_;
    settings.cadence = cadence;
    return bench::run_tests(model, settings, report_.facts.ceilings.read_bytes_per_second);
  }

  // Red flags of a run that has GPU times: an investigation of its own, none of its figures is reported.
  Result<std::vector<bench::RedFlag>> investigate(Model& model, bench::Cadence cadence, bool keep_notes) {
    bench::Settings settings{.tests = {decode_test()}, .repetitions = kSweepRepetitions, .cadence = cadence};
    settings.intent = bench::Intent::kInvestigate;
    DP_TRY(const std::vector<bench::Row> rows, bench::run_tests(model, settings, 0));
    std::vector<bench::PlanProfile> plans;
    if (Model::Impl::of(model).device->caps().timestamps) {
      DP_TRY(plans, bench::run_profile(model, profile_, report_.facts.ceilings));
    }
    const auto& choices = Model::Impl::of(model).loaded->runner->choices();
    for (const bench::PlanProfile& plan : plans) {
      if (!keep_notes) break;
      for (const std::string& note :
           bench::notes(plan, {.facts = report_.facts, .plans = {}, .choices = choices})) {
        report_.notes.push_back(plan.plan + ": " + note);
      }
    }
    return bench::red_flags({.decode = rows.front(), .plans = plans, .choices = choices});
  }

  bench::Test decode_test() const {
    for (const bench::Test& test : settings_.tests) {
      if (test.prompt == 0) return test;
    }
    return {.prompt = 0, .generate = 32, .depth = 0};
  }

  Result<void> first_look() {
    say("measuring the present state");
    DP_TRY(Model model, load(/*tuned=*/false));
    DP_TRY(const kernels::Ceilings ceilings, measure_ceilings(model));
    report_.facts = bench::collect_facts(model, origin_of(flags_.model), ceilings);
    DP_TRY(report_.before, measure(model, {.batch = model::kDefaultBatch}));
    say("sweeping the cadence");
    for (const uint32_t batch : kBatches) {
      if (batch == 1 || batch * 2 <= decode_test().generate) DP_CHECK(sweep(model, {.batch = batch}));
    }
    const uint32_t best = bench::best_cadence(report_.sweep).batch;
    for (const uint32_t interval : kIntervals) {
      if (best * interval * 2 <= std::min(model::kMaxBatch, decode_test().generate))
        DP_CHECK(sweep(model, {.batch = best, .readback_interval = interval}));
    }
    report_.cadence = bench::best_cadence(report_.sweep);
    say("profiling");
    DP_TRY(report_.flags_before, investigate(model, {.batch = model::kDefaultBatch}, /*keep_notes=*/true));
    return {};
  }

  Result<void> sweep(Model& model, bench::Cadence cadence) {
    bench::Settings settings{.tests = {decode_test()}, .repetitions = kSweepRepetitions, .cadence = cadence};
    DP_TRY(const std::vector<bench::Row> rows, bench::run_tests(model, settings, 0));
    report_.sweep.push_back({.cadence = cadence, .rate = bench::median(rows.front().rates)});
    return {};
  }

  Result<void> tune_and_store() {
    say("tuning");
    bench::TunerSettings settings{.budget_seconds = static_cast<double>(flags_.budget)};
    if (stderr_is_terminal()) settings.progress = [](const std::string& line) { say(line.c_str()); };
    DP_TRY(Tuned tuned, tune_model(flags_.model, settings));
    old_ = engine::load_tuning(user_cache_dir(), tuned.key);
    key_ = tuned.key;
    // Only the step count can be a default; the readback interval is for users who choose it.
    DP_CHECK(keep(tuned, report_.cadence.batch));
    report_.tuning = std::move(tuned.result);
    return {};
  }

  // The tuned model, and then once more what there was: a device that drifted meanwhile shows in its samples.
  Result<void> second_look() {
    say("measuring the result");
    {
      DP_TRY(Model model, load(/*tuned=*/true));
      DP_TRY(report_.after, measure(model, report_.cadence));
      DP_TRY(report_.flags_after, investigate(model, report_.cadence, /*keep_notes=*/false));
    }
    DP_TRY(Model model, load(/*tuned=*/false));
    DP_TRY(const std::vector<bench::Row> again, measure(model, {.batch = model::kDefaultBatch}));
    for (size_t i = 0; i < again.size(); ++i) {
      report_.before[i].rates.insert(report_.before[i].rates.end(), again[i].rates.begin(),
                                     again[i].rates.end());
    }
    return {};
  }

  std::vector<uint32_t> golden_prompt() const { return bench::make_prompt(kGoldenPrompt, vocab_size_, 11); }

  Result<Golden> golden(bool tuned) {
    say("checking its answers");
    Golden out;
    const ModelFlags flags = with_tuning(flags_.model, tuned);
    {
      DP_TRY(Model model, load_for(flags, positions_));
      vocab_size_ = model.info().vocab_size;
      const std::vector<uint32_t> prompt = golden_prompt();
      const std::vector<int32_t> ids(prompt.begin(), prompt.end());
      GenerateOptions options;
      options.sampling.temperature = 0;
      options.max_tokens = kGoldenTokens;
      options.ignore_eos = true;
      DP_TRY(const Generation generation, model.new_session().generate(ids, options));
      out.tokens = generation.tokens;
    }
    DP_TRY(out.logits, logits(flags, golden_prompt()));
    return out;
  }

  Result<std::vector<float>> portable_logits() {
    ModelFlags flags = with_tuning(flags_.model, false);
    flags.load.lane = "portable";
    flags.load.kv = "f32";
    flags.load.kernels.clear();
    return logits(flags, golden_prompt());
  }

  Result<void> put_back() {
    if (old_) return engine::save_tuning(user_cache_dir(), key_, *old_);
    DP_TRY([[maybe_unused]] const bool gone, engine::forget_tuning(user_cache_dir(), key_));
    return {};
  }

  void list_commands() {
    std::string model = flags_.model.synthetic.empty() ? "" : " --synthetic " + flags_.model.synthetic;
    if (!flags_.model.model.empty()) model = " --model " + flags_.model.model;
    for (const auto& [flag, value] :
         {std::pair<const char*, std::string>{" --webgpu ", flags_.model.load.webgpu},
          {" --device ", flags_.model.load.device}}) {
      if (!value.empty()) model += flag + value;
    }
    model += " --lane " + flags_.model.load.lane;
    const std::string cadence = format_text(" --batch %u --readback-interval %u", report_.cadence.batch,
                                            report_.cadence.readback_interval);
    report_.commands = {
        "doppler bench" + model + format_text(" --no-tuning --batch %u", model::kDefaultBatch),
        "doppler bench" + model + " --no-tuning -p 0" + cadence,
        "doppler profile" + model + " --no-tuning",
        "doppler tune" + model + format_text(" --budget %u", flags_.budget),
        "doppler kernels --explain" + model,
        "doppler bench" + model + cadence,
        "doppler bench" + model + cadence + " --intent investigate",
    };
  }

  const SqueezeFlags& flags_;
  bench::Settings settings_;
  bench::ProfileSettings profile_{.repetitions = 5};
  bench::SqueezeReport report_;
  uint64_t positions_ = 0;
  uint32_t vocab_size_ = 0;
  std::shared_ptr<const kernels::TuningTable> old_;
  kernels::TuningKey key_;
};

}  // namespace

int squeeze_verb(std::span<const std::string> arguments) {
  SqueezeFlags flags;
  std::vector<std::string> words;
  Args args("doppler squeeze [flags] [MODEL]",
            "Measures a model, finds its best cadence and kernels on this device, measures again, checks "
            "that its answers are the same, and reports before and after.");
  args.words("MODEL", &words);
  const auto lengths = [&args](const char* name, char letter, const char* help, std::vector<uint32_t>* out) {
    args.custom(name, letter, "N[,N]", help, [name, out](std::string_view value) -> Result<void> {
      DP_TRY(*out, bench::parse_lengths(std::string("--") + name, value));
      return {};
    });
  };
  lengths("prompt", 'p', "lengths of evaluated prompts (default 512; 0: none)", &flags.lists.prompts);
  lengths("generate", 'n', "numbers of generated tokens (default 128)", &flags.lists.generates);
  lengths("depth", 'd', "tokens in the cache before each test (default 0)", &flags.lists.depths);
  args.count("repetitions", 'r', "N", "counted runs of each test (default 5)", &flags.repetitions);
  args.count("budget", 0, "SECONDS", "for the tuning (default 120)", &flags.budget);
  args.flag("json", 0, "print one JSON object", &flags.json);
  args.text("output", 0, "FILE", "write the report there, and the text to standard output", &flags.output);
  add_model_flags(args, flags.model, /*allow_synthetic=*/true);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (words.size() > 1 || (!words.empty() && !flags.model.model.empty())) {
    return exit_usage(
        Error(ErrorKind::kInvalidInput, "Several models were given; one is squeezed at a time."));
  }
  if (!words.empty()) flags.model.model = words[0];
  if (flags.repetitions == 0) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "Flag -r was given 0; at least 1 is needed."));
  }
  if (flags.budget == 0) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "Flag --budget was given 0; at least 1 is needed."));
  }
  if (auto checked = check_preset(flags.model, bench::Intent::kCalibrate); !checked)
    return exit_usage(checked.error());
  if (auto checked = check_report_file(flags.output); !checked) return exit_failed(checked.error());
  const auto report = Squeeze(flags).run();
  end_progress();
  if (!report) return exit_failed(report.error());
  const std::string text = bench::squeeze_text(*report);
  const int code = deliver(flags.output, flags.json ? bench::squeeze_json(*report) : text, text);
  return code != 0 ? code : report->gate.passed ? 0 : 1;
}

}  // namespace doppler::cli
