// doppler profile: GPU time of each dispatch of a decode step and of a prefill chunk. bench/profile.h measures;
// bench/profile_report.h prints.
#include <algorithm>
#include <cstdio>

#include "bench/profile_report.h"
#include "cli/measure.h"
#include "cli/verbs.h"

namespace doppler::cli {
namespace {

constexpr int64_t kMostPixelsOfSide = 1 << 14;

Result<void> parse_image_size(std::string_view text, bench::ProfileSettings& settings) {
  const size_t at = text.find('x');
  const int64_t width = parse_int(text.substr(0, at)).value_or(0);
  const int64_t height = at == text.npos ? 0 : parse_int(text.substr(at + 1)).value_or(0);
  if (std::min(width, height) < 1 || std::max(width, height) > kMostPixelsOfSide) {
    return fail(
        ErrorKind::kInvalidInput,
        "Flag --image was given \"%s\"; allowed are a width and a height in pixels, up to %lld, such as "
        "1024x768.",
        printable(text).c_str(), static_cast<long long>(kMostPixelsOfSide));
  }
  settings.image_width = static_cast<uint32_t>(width);
  settings.image_height = static_cast<uint32_t>(height);
  return {};
}

Result<bench::ProfileReport> measure(const ModelFlags& flags, bench::ProfileSettings& settings) {
  DP_TRY(Model model, load_for(flags, bench::positions_needed(settings)));
  DP_TRY(const kernels::Ceilings ceilings, measure_ceilings(model));
  if (stderr_is_terminal()) {
    settings.progress = [&](const std::string& plan, uint32_t repetition) {
      std::fprintf(stderr, "\r\033[K%s, run %u of %u", plan.c_str(), repetition, settings.repetitions);
    };
  }
  auto plans = bench::run_profile(model, settings, ceilings);
  end_progress();
  if (!plans) return forward(std::move(plans).error());
  return bench::ProfileReport{.facts = bench::collect_facts(model, origin_of(flags), ceilings),
                              .plans = std::move(*plans),
                              .choices = Model::Impl::of(model).loaded->runner->choices()};
}

}  // namespace

int profile_verb(std::span<const std::string> arguments) {
  ModelFlags model;
  bench::ProfileSettings settings;
  bool json = false;
  std::string output;
  Args args("doppler profile [flags]",
            "Shows where the GPU time of a step goes, kernel by kernel, beside the least possible time. The "
            "figures are for finding reasons, not for quoting: bench measures the speed.");
  args.count("depth", 'd', "TOKENS", "tokens in the cache before the decode step (default 128; 0: no decode)",
             &settings.depth);
  args.count("prompt", 'p', "TOKENS", "tokens of the prefill chunk (default 512; 0: no prefill)",
             &settings.prompt);
  args.custom("streams", 0, "N[,N]", "decode steps of so many streams together, each at depth -d; only these",
              [&settings](std::string_view value) -> Result<void> {
                DP_TRY(settings.streams, bench::parse_streams(value));
                return {};
              });
  args.custom("image", 0, "WIDTHxHEIGHT",
              "a picture of this size through the model's vision tower; only this",
              [&settings](std::string_view value) { return parse_image_size(value, settings); });
  args.count("repetitions", 'r', "N", "runs whose median counts, for each command (default 10)",
             &settings.repetitions);
  args.flag("json", 0, "print one JSON object, with every command", &json);
  args.text("output", 0, "FILE", "write the report there, and the text to standard output", &output);
  add_model_flags(args, model, /*allow_synthetic=*/true);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (!settings.streams.empty()) {
    settings.prompt = 0;
    model.load.sequences = bench::sequences_needed(settings);
  }
  const bool has_plan = settings.depth != 0 || settings.prompt != 0 || settings.image_width != 0;
  if (settings.repetitions == 0 || !has_plan) {
    return exit_usage(Error(ErrorKind::kInvalidInput,
                            "Nothing is left to profile: -r, and one of -d and -p, must be above 0."));
  }
  if (auto checked = check_preset(model, bench::Intent::kInvestigate); !checked)
    return exit_usage(checked.error());
  if (auto checked = check_report_file(output); !checked) return exit_failed(checked.error());
  auto report = measure(model, settings);
  if (!report) return exit_failed(report.error());
  const std::string text = bench::profile_text(*report);
  return deliver(output, json ? bench::profile_json(*report) : text, text);
}

}  // namespace doppler::cli
