// doppler batch: answers a file of requests in the format of OpenAI's batches. Flags and closing line here, the work in
// src/batch, the format in openai/batch_line.h.
#include <cstdio>

#include "base/file.h"
#include "base/json.h"
#include "batch/batch_run.h"
#include "cli/common.h"
#include "cli/generate_flags.h"
#include "cli/interrupt.h"
#include "cli/transfer_line.h"
#include "cli/verbs.h"
#include "kernels/common/step_state.h"
#include "server/start_chat.h"

namespace doppler::cli {
namespace {

using batch::BatchTotals;

constexpr uint32_t kDefaultSequences = 16;
// Requests handed to the scheduler for each of its places: a place that is free finds its next prompt tokenised, and
// prompts that begin alike meet in the queue.
constexpr uint32_t kRequestsAPlace = 4;

struct BatchFlags {
  ModelFlags model;
  GenerateOptions defaults;
  std::vector<std::string> files;
  bool json = false;
};

void add_flags(Args& args, BatchFlags& flags) {
  flags.model.takes_devices = true;
  flags.model.load.sequences = kDefaultSequences;
  args.words("IN.jsonl OUT.jsonl", &flags.files);
  args.flag("json", 0, "print one JSON object at the end: lines, tokens, seconds", &flags.json);
  args.text("template", 0, "FILE", "Jinja chat template instead of the model's own",
            &flags.model.template_file);
  args.group("Many at a time");
  args.count("sequences", 0, "N", "requests that are decoded together, 1 to 64 (default 16)",
             &flags.model.load.sequences);
  args.count("cache-tokens", 0, "TOKENS",
             "of all requests' caches together (default: --ctx for each, or what fits the device)",
             &flags.model.load.pool_tokens);
  args.bytes("cache-host", 0, "SIZE", "host memory for prefixes that left the GPU's, such as 8G (default 0)",
             &flags.model.load.cache_host_bytes);
  args.group("If a request does not say");
  add_sampling_flags(args, flags.defaults);
  add_pan_and_scan_flag(args, flags.model.load);
  add_model_flags(args, flags.model, /*allow_synthetic=*/true);
}

Result<void> check(const BatchFlags& flags) {
  if (flags.files.size() != 2) {
    return fail(ErrorKind::kInvalidInput,
                "IN.jsonl and OUT.jsonl are needed: requests, a line each, and the file for their answers; "
                "%zu %s given.",
                flags.files.size(), flags.files.size() == 1 ? "word was" : "words were");
  }
  if (flags.files[1] == "-") {
    return fail(
        ErrorKind::kInvalidInput,
        "OUT.jsonl was given as \"-\"; a file is needed, since its finished lines are not done again.");
  }
  const auto in = facts_of(flags.files[0]), out = facts_of(flags.files[1]);
  if (in && out && in->kind != FileKind::kOther && in->is_same_file(*out)) {
    return fail(ErrorKind::kInvalidInput, "%s is IN and OUT; two files are needed.", flags.files[0].c_str());
  }
  const uint32_t sequences = flags.model.load.sequences;
  if (sequences < 1 || sequences > kernels::kMaxSequences) {
    return fail(ErrorKind::kInvalidInput, "Flag --sequences was given %u; allowed is 1 to %u.", sequences,
                kernels::kMaxSequences);
  }
  return check_options(flags.defaults);
}

std::string totals_json(const ModelInfo& info, const BatchTotals& t, const bench::UsedPreset& preset) {
  const Json out = {{"lines", t.lines},
                    {"done_before", t.before},
                    {"answered", t.answered},
                    {"failed", t.failed},
                    {"left", t.left()},
                    {"prompt_tokens", t.prompt_tokens},
                    {"cached_tokens", t.cached_tokens},
                    {"generated_tokens", t.generated_tokens},
                    {"seconds", t.seconds},
                    {"tokens_per_second", t.rate()},
                    {"model", info.name},
                    {"synthetic", info.synthetic},
                    {"preset", bench::preset_json(preset)},
                    {"device", {{"adapter", info.adapter}, {"provider", info.provider}}}};
  return to_text(out, 2);
}

std::string totals_line(const ModelInfo& info, const BatchTotals& t) {
  const auto n = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  std::string out =
      format_text("%llu lines: %llu answered, %llu failed", n(t.lines), n(t.answered), n(t.failed));
  if (t.before > 0) out += format_text(", %llu done before", n(t.before));
  if (t.left() > 0) out += format_text(", %llu left; the same command goes on with them", n(t.left()));
  return out + format_text(
                   "\n%llu prompt tokens (%llu cached), %llu generated in %.1f s: %.1f tok/s, %s (%s)%s",
                   n(t.prompt_tokens), n(t.cached_tokens), n(t.generated_tokens), t.seconds, t.rate(),
                   info.adapter.c_str(), info.provider.c_str(), info.synthetic ? ", SYNTHETIC weights" : "");
}

std::string progress(const BatchTotals& totals) {
  const uint64_t here = totals.answered + totals.failed;
  std::string out = format_text("%llu of %llu lines, %.1f tok/s",
                                static_cast<unsigned long long>(totals.lines - totals.left()),
                                static_cast<unsigned long long>(totals.lines), totals.rate());
  if (here > 0) {
    const double each = totals.seconds / static_cast<double>(here);
    out += ", " + duration_text(each * static_cast<double>(totals.left())) + " left";
  }
  return out;
}

// The files come before the model: what is wrong with them is said at once.
Result<BatchTotals> answer_file(BatchFlags& flags) {
  DP_TRY(openai::LineReader input, openai::LineReader::open(flags.files[0]));
  DP_TRY(const uint64_t lines, openai::count_lines(input));
  DP_TRY(openai::BatchOutput output, openai::BatchOutput::open(flags.files[1]));
  DP_TRY(Model model, load_named_model(flags.model));
  DP_TRY(Scheduler scheduler, model.scheduler());
  const auto devices = static_cast<uint32_t>(scheduler.load().devices.size());
  const InterruptFlag interrupt;
  batch::BatchRun run(scheduler, input, output,
                      {.defaults = flags.defaults,
                       .in_flight = flags.model.load.sequences * devices * kRequestsAPlace,
                       .model = model.info().name,
                       .start_chat = server::chat_starter(model, server::UnknownTools::kTold),
                       .token_text = server::token_text_of(model),
                       .token_ids = !model.info().has_tokenizer,
                       .on_tick =
                           [&interrupt](const BatchTotals& totals) {
                             if (stderr_is_terminal())
                               std::fprintf(stderr, "\r\033[K%s", progress(totals).c_str());
                             return !interrupt.raised();
                           }},
                      lines);
  const auto totals = run.run();
  if (stderr_is_terminal()) std::fprintf(stderr, "\r\033[K");
  if (!totals) return forward(totals.error());
  if (flags.json)
    std::printf("%s\n", totals_json(model.info(), *totals, flags.model.preset.used).c_str());
  else
    std::fprintf(stderr, "%s\n", totals_line(model.info(), *totals).c_str());
  return totals;
}

}  // namespace

int batch_verb(std::span<const std::string> arguments) {
  BatchFlags flags;
  Args args("doppler batch [flags] IN.jsonl OUT.jsonl",
            "Answers a file of requests in the format of OpenAI's batches. After an interruption the same "
            "command goes on.");
  add_flags(args, flags);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (auto checked = check(flags); !checked) return exit_usage(checked.error());
  const auto totals = answer_file(flags);
  if (!totals) return exit_failed(totals.error());
  return totals->left() == 0 ? 0 : 1;
}

}  // namespace doppler::cli
