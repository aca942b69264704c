// doppler bench: llama-bench's tests on one model. bench/harness.h measures, or bench_surface.h in browsers and Node;
// bench/report.h prints.
#include <cstdio>

#include "base/trace.h"
#include "cli/bench_surface.h"
#include "cli/dry_run.h"
#include "cli/measure.h"
#include "cli/running_report.h"
#include "cli/verbs.h"
#include "gpu/device_list.h"

namespace doppler::cli {
namespace {

struct BenchFlags {
  ModelFlags model;
  bench::TestLists lists;
  bench::Settings settings;
  bench::Format format = bench::Format::kMarkdown;
  std::string output;
  bool dry_run = false;
  Surface surface = Surface::kNative;
  std::string chromium, chromium_flags;
};

void add_flags(Args& args, BenchFlags& flags) {
  flags.model.takes_devices = true;
  flags.model.takes_names = true;
  const auto lengths = [&args](const char* name, char letter, const char* help, std::vector<uint32_t>* out) {
    args.custom(name, letter, "N[,N]", help, [letter, out](std::string_view value) -> Result<void> {
      DP_TRY(*out, bench::parse_lengths(std::string("-") + letter, value));
      return {};
    });
  };
  lengths("prompt", 'p', "lengths of evaluated prompts (default 512; 0: none)", &flags.lists.prompts);
  lengths("generate", 'n', "numbers of generated tokens (default 128; 0: none)", &flags.lists.generates);
  args.custom("pg", 0, "P,G", "evaluate P and then generate G, as one test (also -pg); may be repeated",
              [&flags](std::string_view value) -> Result<void> {
                DP_TRY(const auto pair, bench::parse_pair("-pg", value));
                flags.lists.pairs.push_back(pair);
                return {};
              });
  lengths("depth", 'd', "tokens in the cache before each test (default 0)", &flags.lists.depths);
  args.custom("streams", 0, "N[,N]", "so many streams generate -n tokens together; only these tests",
              [&flags](std::string_view value) -> Result<void> {
                DP_TRY(flags.lists.streams, bench::parse_streams(value));
                return {};
              });
  args.count("repetitions", 'r', "N", "counted runs of each test, after a warm-up (default 5)",
             &flags.settings.repetitions);
  args.count("batch", 0, "N", "decode steps of one submit, 1 to 256 (default: tuning's best, or 16)",
             &flags.settings.cadence.batch, {.least = 1, .most = model::kMaxBatch});
  args.count("readback-interval", 0, "N", "submits whose tokens come back together, 1 to 256 (default 1)",
             &flags.settings.cadence.readback_interval, {.least = 1, .most = model::kMaxBatch});
  args.custom(
      "draft-acceptance", 0, "P",
      "of --draft: so many drafts count as right, 0 to 1, whatever they are (intent investigate only)",
      [&flags](std::string_view value) -> Result<void> {
        const auto share = parse_double(value);
        if (!share || !(*share >= 0 && *share <= 1)) {
          return fail(ErrorKind::kInvalidInput,
                      "Flag --draft-acceptance was given \"%s\"; allowed is 0 to 1.",
                      printable(value).c_str());
        }
        flags.model.load.draft_acceptance = static_cast<float>(*share);
        return {};
      });
  args.count(
      "draft-edits", 0, "N",
      "of --draft lookup: the answer is known before, but for one token of each N (default: it is not known)",
      &flags.settings.draft_edits, {.least = 2});
  args.custom("intent", 0, "INTENT", "calibrate (default: figures to be quoted), or investigate (may trace)",
              [&flags](std::string_view value) -> Result<void> {
                for (const auto intent : {bench::Intent::kCalibrate, bench::Intent::kInvestigate}) {
                  if (value != bench::intent_name(intent)) continue;
                  flags.settings.intent = intent;
                  return {};
                }
                return fail(ErrorKind::kInvalidInput,
                            "Intent \"%s\" is not known; allowed are calibrate and investigate.",
                            printable(value).c_str());
              });
  args.custom("format", 'o', "FORMAT", "md (default), csv or json",
              [&flags](std::string_view value) -> Result<void> {
                DP_TRY(flags.format, bench::parse_format(value));
                return {};
              });
  args.flag("dry-run", 0, "say what memory this would take and whether it fits; measure nothing",
            &flags.dry_run);
  args.text("output", 0, "FILE", "write the report there, and the markdown table to standard output",
            &flags.output);
  args.custom("surface", 0, "SURFACE", "native (default), or the npm package in browser or node",
              [&flags](std::string_view value) -> Result<void> {
                DP_TRY(flags.surface, parse_surface(value));
                return {};
              });
  args.text("chromium", 0, "FILE", "of --surface browser: the program (default: the distribution's)",
            &flags.chromium);
  args.text("chromium-flags", 0, "FLAGS", "of --surface browser: further flags, blanks between them",
            &flags.chromium_flags);
  add_model_flags(args, flags.model, /*allow_synthetic=*/true);
}

Result<void> check(BenchFlags& flags) {
  if (flags.settings.repetitions == 0)
    return fail(ErrorKind::kInvalidInput, "Flag -r was given 0; at least 1 is needed.");
  DP_CHECK(check_cadence(flags.settings.cadence));
  DP_CHECK(check_preset(flags.model, flags.settings.intent));
  if (flags.settings.intent == bench::Intent::kCalibrate && is_tracing()) {
    return fail(
        ErrorKind::kInvalidInput,
        "Calibration runs never trace: leave out --trace, or say --intent investigate (not to be quoted).");
  }
  if (flags.settings.intent == bench::Intent::kCalibrate && flags.model.load.draft_acceptance >= 0) {
    return fail(
        ErrorKind::kInvalidInput,
        "Calibration runs simulate no drafts: leave out --draft-acceptance, or say --intent investigate "
        "(not to be quoted).");
  }
  if (flags.settings.draft_edits != 0 && flags.model.load.draft != "lookup")
    return fail(ErrorKind::kInvalidInput,
                "Flag --draft-edits needs --draft lookup, which searches the prediction.");
  DP_TRY(flags.settings.tests, bench::make_tests(flags.lists));
  if (gpu::names_several(flags.model.load.device) && flags.lists.streams.empty()) {
    return fail(
        ErrorKind::kInvalidInput,
        "Flag --device was given \"%s\"; one prompt or stream runs on one device, and only --streams uses "
        "several.",
        flags.model.load.device.c_str());
  }
  flags.model.load.sequences = bench::sequences_needed(flags.settings.tests);
  if (flags.model.load.ctx_len == 0) return {};  // load_for() takes what the tests need
  return bench::check_context(flags.settings.tests, flags.model.load.ctx_len);
}

Result<void> measure(BenchFlags& flags) {
  DP_CHECK(check_report_file(flags.output));
  DP_TRY(Model model, load_for(flags.model, bench::positions_needed(flags.settings.tests)));
  DP_TRY(const kernels::Ceilings ceilings, measure_ceilings(model));
  bench::Report report{.facts = bench::collect_facts(model, origin_of(flags.model), ceilings),
                       .intent = flags.settings.intent,
                       .rows = {}};
  if (flags.settings.cadence.batch != 0) report.facts.batch = flags.settings.cadence.batch;
  report.facts.sequences = flags.model.load.sequences;
  report.facts.readback_interval = flags.settings.cadence.readback_interval;
  report.facts.draft_edits = flags.settings.draft_edits;
  report.facts.warmups = flags.settings.warmups;
  report.facts.repetitions = flags.settings.repetitions;

  if (stderr_is_terminal()) {
    flags.settings.progress = [&](size_t test, uint32_t repetition) {
      std::fprintf(stderr, "\r\033[K%s, run %u of %u", flags.settings.tests[test].name().c_str(), repetition,
                   flags.settings.repetitions);
    };
  }
  RunningReport running(std::move(report), flags.format, flags.output);
  flags.settings.on_row = [&](const bench::Row& row) { return running.add(row); };
  running.begin();
  const auto rows = bench::run_tests(model, flags.settings, ceilings.read_bytes_per_second);
  running.end();
  if (!rows) return forward(rows.error());
  return {};
}

}  // namespace

int bench_verb(std::span<const std::string> arguments) {
  BenchFlags flags;
  Args args("doppler bench [flags]",
            "Measures prefill (pp) and decode (tg) speed, with the tests and rows of llama-bench.");
  add_flags(args, flags);
  std::vector<std::string> spelled(arguments.begin(), arguments.end());
  for (std::string& argument : spelled) {
    if (argument == "-pg") argument = "--pg";  // llama-bench's spelling of a flag with two letters
  }
  if (const auto code = parse_or_exit(args, spelled)) return *code;
  if (auto checked = check_surface_flags(flags.surface, args.given()); !checked)
    return exit_usage(checked.error());
  if (auto checked = check(flags); !checked) return exit_usage(checked.error());
  if (flags.surface != Surface::kNative) {
    const auto measured = bench_surface({.surface = flags.surface,
                                         .model = flags.model,
                                         .settings = flags.settings,
                                         .format = flags.format,
                                         .output = flags.output,
                                         .chromium = flags.chromium,
                                         .chromium_flags = flags.chromium_flags});
    return measured ? 0 : exit_failed(measured.error());
  }
  if (flags.dry_run) {
    const uint64_t positions = bench::positions_needed(flags.settings.tests);
    if (flags.model.load.ctx_len == 0 && positions > model::kDefaultCtxLen) {
      flags.model.load.ctx_len = static_cast<uint32_t>(positions);  // as load_for() does
    }
    return dry_run(flags.model, flags.format == bench::Format::kJson);
  }
  const auto measured = measure(flags);
  return measured ? 0 : exit_failed(measured.error());
}

}  // namespace doppler::cli
