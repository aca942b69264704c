#include "cli/generate_flags.h"

#include "engine/loaded_model.h"
#include "kernels/step/draft_text.h"

namespace doppler::cli {
namespace {

Result<void> add_bias(std::string_view text, std::vector<std::pair<int32_t, float>>* list) {
  const size_t colon = text.find(':');
  const auto token = parse_int(text.substr(0, colon));
  const auto bias = colon == std::string_view::npos ? std::nullopt : parse_double(text.substr(colon + 1));
  if (!token || *token < 0 || *token > INT32_MAX || !bias) {
    return fail(ErrorKind::kInvalidInput,
                "Flag --logit-bias was given \"%s\"; it takes TOKEN:BIAS, such as 17:-2.5.",
                printable(text).c_str());
  }
  list->emplace_back(static_cast<int32_t>(*token), static_cast<float>(*bias));
  return {};
}

}  // namespace

void add_sampling_flags(Args& args, GenerateOptions& o) {
  SamplingOptions& s = o.sampling;
  args.count("max-tokens", 'n', "N",
             "tokens to generate at most; 0, the default: until the model stops or the context is full",
             &o.max_tokens);
  args.number("temp", 't', "T", "temperature; 0 takes the likeliest token (default 0.8)", &s.temperature);
  args.count("top-k", 0, "K", "sample among the K likeliest; 0: off (default 40)", &s.top_k);
  args.number("top-p", 0, "P", "sample among those that make up P; 1: off (default 0.95)", &s.top_p);
  args.number("min-p", 0, "P", "drop tokens below P times the likeliest; 0: off (default 0)", &s.min_p);
  args.number("repeat-penalty", 0, "X", "weaken the last 64 tokens; 1: off (default 1)", &s.repeat_penalty);
  args.number("presence-penalty", 0, "X", "subtract once from tokens among the last 64 (default 0)",
              &s.presence_penalty);
  args.number("frequency-penalty", 0, "X", "subtract per occurrence among the last 64 (default 0)",
              &s.frequency_penalty);
  args.number("top-n-sigma", 0, "N",
              "drop logits N standard deviations below the highest; 0: off (default 0)", &s.top_n_sigma);
  args.number("typical", 0, "P", "sample among the most typical that make up P; 1: off (default 1)",
              &s.typical_p);
  args.number("xtc-probability", 0, "P", "how often XTC leaves out the top choices (default 0)",
              &s.xtc_probability);
  args.number("xtc-threshold", 0, "P", "least probability of a top choice, up to 0.5 (default 0.1)",
              &s.xtc_threshold);
  args.number("dynatemp-range", 0, "T", "temperature by entropy, T up and down; 0: off (default 0)",
              &s.dynatemp_range);
  args.number("dynatemp-exponent", 0, "X", "of the entropy's part (default 1)", &s.dynatemp_exponent);
  args.number("mirostat", 0, "TAU", "mirostat 2 at TAU bits, in place of the cuts; 0: off (default 0)",
              &s.mirostat_tau);
  args.number("mirostat-eta", 0, "ETA", "how fast mirostat gets there (default 0.1)", &s.mirostat_eta);
  args.number("dry-multiplier", 0, "X", "weaken tokens that would repeat a run; 0: off (default 0)",
              &s.dry_multiplier);
  args.number("dry-base", 0, "X", "DRY's growth with the run's length (default 1.75)", &s.dry_base);
  args.count("dry-allowed-length", 0, "N", "runs shorter than N are free (default 2)", &s.dry_allowed_length);
  args.count("dry-range", 0, "N", "tokens back that DRY looks, up to 1024 (default 0: 1024)", &s.dry_range);
  args.texts("dry-breaker", 0, "TEXT", "no run reaches over it, beside newline : \" and *; may be repeated",
             &s.dry_breakers);
  args.count("min-tokens", 0, "N", "tokens to generate before an end token may come (default 0)",
             &s.min_tokens);
  args.custom("logit-bias", 0, "TOKEN:B", "add B to a token's logit; may be repeated",
              [&s](std::string_view value) { return add_bias(value, &s.logit_bias); });
  args.big_count(
      "seed", 's', "SEED",
      "the same seed gives the same text; with several sequences only with --lane exact (default 0)",
      &s.seed);
  args.texts("stop", 0, "TEXT", "end before this text; may be repeated", &o.stop);
  args.flag("json-blanks", 0, "blanks may stand between the tokens of JSON that a schema or a tool asks for",
            &o.grammar.json_blanks);
  args.flag("ignore-eos", 0, "go on past the end token", &o.ignore_eos);
  args.count("draft-rows", 0, "N",
             "of --draft: tokens that a step checks, 2 to 8, whether or not that is faster (default: as many "
             "as pay)",
             &o.draft_rows, {.least = 2, .most = kernels::kMostDraftRows});
  args.custom("when-full", 0, "stop|slide",
              "at the end of the context: stop (default) or drop the older half",
              [&o](std::string_view value) -> Result<void> {
                if (value != "stop" && value != "slide") {
                  return fail(ErrorKind::kInvalidInput,
                              "Flag --when-full was given \"%s\"; allowed are stop and slide.",
                              printable(value).c_str());
                }
                o.when_full = value == "slide" ? WhenFull::kSlide : WhenFull::kStop;
                return {};
              });
}

void add_generate_flags(Args& args, GenerateFlags& flags) {
  GenerateOptions& o = flags.options;
  args.group("Generation");
  add_sampling_flags(args, o);
  args.count("batch", 0, "N", "decode steps of one submit, 1 to 256 (default: tuning's best, or 16)",
             &o.batch, {.least = 1, .most = model::kMaxBatch});
  args.count("readback-interval", 0, "N", "submits whose tokens come back together, 1 to 256 (default 1)",
             &o.readback_interval, {.least = 1, .most = model::kMaxBatch});
  args.custom("stop-check", 0, "device|host",
              "who finds an end token: the device, which then stops (default), or only the host",
              [&o](std::string_view value) -> Result<void> {
                if (value != "device" && value != "host") {
                  return fail(ErrorKind::kInvalidInput,
                              "Flag --stop-check was given \"%s\"; allowed are device and host.",
                              printable(value).c_str());
                }
                o.stop_on_device = value == "device";
                return {};
              });
}

}  // namespace doppler::cli
