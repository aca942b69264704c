#include "engine/generation_settings.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "engine/model_options.h"
#include "kernels/step/draft_text.h"

namespace doppler {
namespace {

struct Bound {
  const char* name;
  double value, least, most;
};

Result<void> check_bounds(std::span<const Bound> bounds) {
  for (const Bound& bound : bounds) {
    if (!(bound.value >= bound.least && bound.value <= bound.most)) {
      return fail(ErrorKind::kInvalidInput, "Option %s is %g; allowed is %g to %g.", bound.name, bound.value,
                  bound.least, bound.most);
    }
  }
  return {};
}

}  // namespace

Result<void> check_options(const GenerateOptions& options) {
  const SamplingOptions& s = options.sampling;
  const Bound bounds[] = {
      {"temperature", s.temperature, 0, 100},
      {"top-p", s.top_p, 0, 1},
      {"min-p", s.min_p, 0, 1},
      {"repeat-penalty", s.repeat_penalty, 0.01, 100},
      {"presence-penalty", s.presence_penalty, -100, 100},
      {"frequency-penalty", s.frequency_penalty, -100, 100},
      {"top-n-sigma", s.top_n_sigma, 0, 1000},
      {"typical", s.typical_p, 0, 1},
      {"xtc-probability", s.xtc_probability, 0, 1},
      {"xtc-threshold", s.xtc_threshold, 0, 0.5},
      {"dynatemp-range", s.dynatemp_range, 0, 100},
      {"dynatemp-exponent", s.dynatemp_exponent, 0.01, 100},
      {"mirostat", s.mirostat_tau, 0, 18},  // bits: those of the largest vocabulary
      {"mirostat-eta", s.mirostat_eta, 0, 1},
      {"dry-multiplier", s.dry_multiplier, 0, 100},
      {"dry-base", s.dry_base, 1, 10},
      {"dry-allowed-length", static_cast<double>(s.dry_allowed_length), 1, kernels::kDryLongest},
      {"dry-range", static_cast<double>(s.dry_range), 0, kernels::kDryHistory},
      {"top-logprobs", static_cast<double>(options.top_logprobs), 0,
       options.logprobs ? kMaxTopLogprobs : 0.0},
      {"draft-rows", static_cast<double>(options.draft_rows), 0, kernels::kMostDraftRows},
  };
  DP_CHECK(check_bounds(bounds));
  if (std::ranges::count(options.stop, "") > 0) {
    return fail(ErrorKind::kInvalidInput,
                "Option stop is an empty text; allowed are texts that are not empty.");
  }
  if (options.grammar.kind != GrammarKind::kNone && s.min_tokens > 0) {
    return fail(
        ErrorKind::kInvalidInput,
        "Option min-tokens is %u beside a grammar, which says itself when an answer may end; allowed is 0.",
        s.min_tokens);
  }
  if (options.max_tokens != 0 && s.min_tokens > options.max_tokens) {
    return fail(ErrorKind::kInvalidInput,
                "Option min-tokens is %u and an answer has at most %u tokens; allowed is 0 to %u.",
                s.min_tokens, options.max_tokens, options.max_tokens);
  }
  return {};
}

}  // namespace doppler

namespace doppler::engine {
namespace {

// After each slide the random numbers are another stream.
constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15ull;
static_assert(kMaxTopLogprobs == kernels::kMaxLogProbs);

Result<void> check_biases(const SamplingOptions& options, uint32_t vocab_size) {
  for (const auto& [token, bias] : options.logit_bias) {
    if (token < 0 || static_cast<uint32_t>(token) >= vocab_size) {
      return fail(ErrorKind::kInvalidInput,
                  "The logit bias names token %d, outside the vocabulary; allowed is 0 to %u.", token,
                  vocab_size - 1);
    }
    if (std::isnan(bias)) {
      return fail(ErrorKind::kInvalidInput, "The logit bias of token %d is not a number.", token);
    }
  }
  return {};
}

// The tokens that contain one of the texts.
std::vector<uint32_t> tokens_with(const tokenizer::Tokenizer& tokenizer, std::span<const std::string> texts) {
  std::vector<uint32_t> tokens;
  for (uint32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string_view bytes = tokenizer.token_bytes(static_cast<int32_t>(id));
    const auto is_in = [&](const std::string& text) {
      return !text.empty() && bytes.find(text) != bytes.npos;
    };
    if (std::ranges::any_of(texts, is_in)) tokens.push_back(id);
  }
  return tokens;
}

}  // namespace

Result<void> check_options(const GenerateOptions& options, const AnswerConfig& config, uint32_t max_batch) {
  DP_CHECK(doppler::check_options(options));
  if (!options.draft.empty()) {
    DP_TRY(const model::Drafting asked, drafting_of(options.draft));
    if (asked == model::Drafting::kNext && !config.drafters.next_layer) {
      return fail(
          ErrorKind::kUnsupported,
          "The drafter next was asked for, but the model has no next-token layer, or it was not loaded "
          "(--draft).");
    }
    if (asked == model::Drafting::kModel && !config.drafters.model) {
      return fail(ErrorKind::kUnsupported,
                  "The drafter model was asked for, but no draft model was loaded (--draft-model).");
    }
  }
  const uint32_t most_readbacks = max_batch / std::max(1u, options.batch);
  const Bound bounds[] = {
      {"batch", static_cast<double>(options.batch), 1, static_cast<double>(max_batch)},
      {"readback-interval", static_cast<double>(options.readback_interval), 1,
       static_cast<double>(most_readbacks)},
  };
  DP_CHECK(check_bounds(bounds));
  return check_biases(options.sampling, config.vocab_size);
}

model::Drafter drafter_of(const GenerateOptions& options, const AnswerConfig& config) {
  const Result<model::Drafting> asked = options.draft.empty() ? config.drafting : drafting_of(options.draft);
  return asked ? model::drafter_of(*asked, config.drafters) : model::Drafter::kNone;
}

model::GenerationSettings settings_of(const GenerateOptions& o, const AnswerConfig& config,
                                      const tokenizer::Tokenizer* tokenizer, const Segment& segment) {
  const SamplingOptions& s = o.sampling;
  model::GenerationSettings out;
  // Penalties and biases change the choice even without randomness, so only the plain case takes the greedy
  // plan.
  const bool plain = s.repeat_penalty == 1.0f && s.presence_penalty == 0 && s.frequency_penalty == 0 &&
                     s.logit_bias.empty() && s.dry_multiplier == 0 && s.min_tokens == 0;
  out.greedy = s.top_k == 1 ? plain : s.temperature == 0 && plain;
  out.sampling = {.temperature = s.temperature == 0 ? 1.0f : s.temperature,
                  .top_p = s.top_p,
                  .min_p = s.min_p,
                  .top_k = s.temperature == 0 ? 1 : s.top_k,
                  .repeat_penalty = s.repeat_penalty,
                  .presence_penalty = s.presence_penalty,
                  .frequency_penalty = s.frequency_penalty,
                  .logprobs = o.logprobs ? 1 + o.top_logprobs : 0,
                  .min_tokens = s.min_tokens - std::min(s.min_tokens, segment.generated),
                  .top_n_sigma = s.top_n_sigma,
                  .typical_p = s.typical_p,
                  .xtc_probability = s.xtc_probability,
                  .xtc_threshold = s.xtc_threshold,
                  .dynatemp_range = s.dynatemp_range,
                  .dynatemp_exponent = s.dynatemp_exponent,
                  .mirostat_tau = s.temperature == 0 ? 0 : s.mirostat_tau,  // which takes no top-k
                  .mirostat_eta = s.mirostat_eta,
                  .dry_multiplier = s.dry_multiplier,
                  .dry_base = s.dry_base,
                  .dry_allowed_length = s.dry_allowed_length,
                  .dry_range = s.dry_range};
  for (const auto& [token, bias] : s.logit_bias)
    out.logit_bias.emplace_back(static_cast<uint32_t>(token), bias);
  out.seed = s.seed + segment.slides * kGoldenRatio;
  out.max_tokens = segment.max_tokens;
  if (o.stop_on_device) out.stop_tokens = config.stop_tokens;
  out.ignore_stop = o.ignore_eos;
  out.drafter = drafter_of(o, config);
  if (tokenizer && out.drafter == model::Drafter::kLookup && !o.prediction.empty()) {
    if (const auto ids = tokenizer->encode(o.prediction)) out.prediction.assign(ids->begin(), ids->end());
  }
  out.masked = o.grammar.kind != GrammarKind::kNone;
  if (tokenizer && s.dry_multiplier > 0) out.dry_breakers = tokens_with(*tokenizer, s.dry_breakers);
  return out;
}

ptrdiff_t kept_by_slide(uint32_t ctx_len) { return std::max<ptrdiff_t>(1, ctx_len / 2); }

}  // namespace doppler::engine
