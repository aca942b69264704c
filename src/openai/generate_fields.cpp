#include "openai/generate_fields.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/json.h"
#include "openai/draft_fields.h"

namespace doppler::openai {
namespace {

constexpr int64_t kMostTokens = INT32_MAX;

// The meaning of -1. Clients of other servers send it to switch a field off.
enum class MinusOne : uint8_t { kRefused, kIsZero };

struct NumberField {
  const char* name;
  float SamplingOptions::* value;
  MinusOne minus_one = MinusOne::kRefused;
};
constexpr NumberField kNumbers[] = {
    {"temperature", &SamplingOptions::temperature},
    {"top_p", &SamplingOptions::top_p},
    {"min_p", &SamplingOptions::min_p},
    {"presence_penalty", &SamplingOptions::presence_penalty},
    {"frequency_penalty", &SamplingOptions::frequency_penalty},
    {"repeat_penalty", &SamplingOptions::repeat_penalty},
    {"repetition_penalty", &SamplingOptions::repeat_penalty},
    {"top_n_sigma", &SamplingOptions::top_n_sigma, MinusOne::kIsZero},
    {"typical_p", &SamplingOptions::typical_p},
    {"xtc_probability", &SamplingOptions::xtc_probability},
    {"xtc_threshold", &SamplingOptions::xtc_threshold},
    {"dynatemp_range", &SamplingOptions::dynatemp_range},
    {"dynatemp_exponent", &SamplingOptions::dynatemp_exponent},
    {"mirostat_tau", &SamplingOptions::mirostat_tau},
    {"mirostat_eta", &SamplingOptions::mirostat_eta},
    {"dry_multiplier", &SamplingOptions::dry_multiplier},
    {"dry_base", &SamplingOptions::dry_base},
};

struct CountField {
  const char* name;
  uint32_t SamplingOptions::* value;
  MinusOne minus_one = MinusOne::kRefused;
};
constexpr CountField kCounts[] = {
    {"top_k", &SamplingOptions::top_k, MinusOne::kIsZero},
    {"min_tokens", &SamplingOptions::min_tokens},
    {"dry_allowed_length", &SamplingOptions::dry_allowed_length},
    {"dry_range", &SamplingOptions::dry_range, MinusOne::kIsZero},
};

constexpr const char* kOthers[] = {
    "max_tokens", "seed",         "stop",       "logit_bias", "ignore_eos", "dry_sequence_breakers",
    "logprobs",   "top_logprobs", "prediction", "draft",      "draft_rows"};

Result<void> read_field(const Json& body, const NumberField& field, SamplingOptions* sampling) {
  DP_TRY(const auto number, get_number(body, field.name));
  if (!number) return {};
  float& out = sampling->*field.value;
  const bool is_none = field.minus_one == MinusOne::kIsZero && *number == -1;
  out = is_none ? 0 : static_cast<float>(*number);
  if (!std::isinf(out)) return {};
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" is %g; allowed are numbers from -3.4e38 to 3.4e38.",
              field.name, *number);
}

Result<void> read_field(const Json& body, const CountField& field, SamplingOptions* sampling) {
  DP_TRY(const auto number, get_integer(body, field.name));
  if (number == -1 && field.minus_one == MinusOne::kIsZero) {
    sampling->*field.value = 0;
    return {};
  }
  if (number && *number < 0 && field.minus_one == MinusOne::kIsZero) {
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" is %lld; allowed is 0 to %d, and -1 for off.",
                field.name, static_cast<long long>(*number), INT32_MAX);
  }
  return read_count(body, field.name, 0, INT32_MAX, &(sampling->*field.value));
}

// The limit in tokens, or 0 for -1, which means no limit. No value: the body has no such field.
Result<std::optional<uint32_t>> read_limit(const Json& body, const char* key) {
  DP_TRY(const auto number, get_integer(body, key));
  if (!number) return std::optional<uint32_t>();
  if (*number == -1) return std::optional<uint32_t>(0);
  if (*number < 1 || *number > kMostTokens) {
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" is %lld; allowed is 1 to %lld, and -1 for no limit.",
                key, static_cast<long long>(*number), static_cast<long long>(kMostTokens));
  }
  return std::optional(static_cast<uint32_t>(*number));
}

std::string limit_text(uint32_t limit) { return limit == 0 ? "-1" : std::to_string(limit); }

Result<void> read_limit(const Json& body, GenerateOptions* options) {
  DP_TRY(const auto older, read_limit(body, "max_tokens"));
  DP_TRY(const auto newer, read_limit(body, "max_completion_tokens"));
  if (older && newer && *older != *newer) {
    return fail(ErrorKind::kInvalidInput,
                "Fields \"max_tokens\" (%s) and \"max_completion_tokens\" (%s) mean the same and differ.",
                limit_text(*older).c_str(), limit_text(*newer).c_str());
  }
  if (older || newer) options->max_tokens = older ? *older : *newer;
  // If the limit and the least number of tokens exclude each other, the one that the body does not say yields.
  uint32_t& least = options->sampling.min_tokens;
  if (options->max_tokens == 0 || least <= options->max_tokens) return {};
  if (!says(body, "min_tokens")) least = options->max_tokens;
  if (!older && !newer) options->max_tokens = least;
  return {};
}

Result<void> read_stop(const Json& body, GenerateOptions* options) {
  const Json* stop = find(body, "stop");
  if (!stop || stop->is_null()) return {};
  const Json list = stop->is_array() ? *stop : Json::array({*stop});
  options->stop.clear();
  for (const Json& text : list) {
    if (!text.is_string() || text.text().empty()) {
      return fail(ErrorKind::kInvalidInput,
                  "Field \"stop\" has %s; allowed is a text that is not empty, or a list of such.",
                  printable(to_text(text)).c_str());
    }
    options->stop.push_back(text.text());
  }
  return {};
}

Result<void> read_bias(const Json& body, SamplingOptions* sampling) {
  const Json* biases = find(body, "logit_bias");
  if (!biases || biases->is_null()) return {};
  if (!biases->is_object()) {
    return fail(ErrorKind::kInvalidInput, "Field \"logit_bias\" must be an object, but it is %s.",
                printable(to_text(*biases)).c_str());
  }
  sampling->logit_bias.clear();
  for (const auto& [key, bias] : biases->items()) {
    const auto token = parse_int(key);
    if (!token || *token < 0 || *token > INT32_MAX || !bias.is_number()) {
      return fail(ErrorKind::kInvalidInput,
                  "Field \"logit_bias\" has \"%s\": %s; it takes a token's number and what is added.",
                  printable(key).c_str(), printable(to_text(bias)).c_str());
    }
    sampling->logit_bias.emplace_back(static_cast<int32_t>(*token), static_cast<float>(bias.get<double>()));
  }
  return {};
}

Result<void> read_breakers(const Json& body, SamplingOptions* sampling) {
  const Json* list = find(body, "dry_sequence_breakers");
  if (!list || list->is_null()) return {};
  const bool is_texts =
      list->is_array() && std::ranges::all_of(*list, [](const Json& item) { return item.is_string(); });
  if (!is_texts) {
    return fail(ErrorKind::kInvalidInput, "Field \"dry_sequence_breakers\" must be a list of texts.");
  }
  sampling->dry_breakers.clear();
  for (const Json& item : *list) sampling->dry_breakers.push_back(item.text());
  return {};
}

}  // namespace

bool is_generate_option(std::string_view name) {
  return std::ranges::find(kNumbers, name, &NumberField::name) != std::end(kNumbers) ||
         std::ranges::find(kCounts, name, &CountField::name) != std::end(kCounts) ||
         std::ranges::find(kOthers, name) != std::end(kOthers);
}

std::vector<std::string> generate_option_names() {
  std::vector<std::string> out(std::begin(kOthers), std::end(kOthers));
  for (const NumberField& field : kNumbers) out.emplace_back(field.name);
  for (const CountField& field : kCounts) out.emplace_back(field.name);
  return out;
}

Result<void> read_count(const Json& body, const char* key, int64_t least, int64_t most, uint32_t* out) {
  DP_TRY(const auto number, get_integer(body, key));
  if (!number) return {};
  if (*number < least || *number > most) {
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" is %lld; allowed is %lld to %lld.", key,
                static_cast<long long>(*number), static_cast<long long>(least), static_cast<long long>(most));
  }
  *out = static_cast<uint32_t>(*number);
  return {};
}

bool says(const Json& body, const char* key) {
  const Json* value = find(body, key);
  return value && !value->is_null();
}

Result<void> settle_min_tokens(bool is_own, GenerateOptions* options) {
  uint32_t& least = options->sampling.min_tokens;
  if (least == 0 || options->grammar.kind == GrammarKind::kNone) return {};
  if (is_own) {
    return fail(ErrorKind::kInvalidInput,
                "Field \"min_tokens\" is %u beside a grammar, which says itself when an answer may end; "
                "allowed is 0.",
                least);
  }
  least = 0;
  return {};
}

Result<void> read_generate_options(const Json& body, GenerateOptions* options) {
  SamplingOptions& s = options->sampling;
  for (const NumberField& field : kNumbers) DP_CHECK(read_field(body, field, &s));
  for (const CountField& field : kCounts) DP_CHECK(read_field(body, field, &s));
  DP_TRY(const auto seed, get_integer(body, "seed"));
  if (seed && *seed != kRandomSeed) s.seed = static_cast<uint64_t>(*seed);
  DP_TRY(const auto ignore_eos, get_bool(body, "ignore_eos"));
  if (ignore_eos) options->ignore_eos = *ignore_eos;
  DP_CHECK(read_limit(body, options));
  DP_CHECK(read_stop(body, options));
  DP_CHECK(read_breakers(body, &s));
  DP_CHECK(read_draft(body, options));
  return read_bias(body, &s);
}

}  // namespace doppler::openai
