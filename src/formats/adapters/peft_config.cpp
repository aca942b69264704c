#include "formats/adapters/peft_config.h"

#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "formats/adapters/adapter.h"

namespace doppler::formats {
namespace {

constexpr const char* kWhat = "adapter_config.json";
constexpr size_t kMostPatterns = 65'536, kMostInvocationTokens = 256;

// Fields that change the maths, unless they are null, false or empty.
constexpr const char* kRefused[] = {"use_qalora",
                                    "use_bdlora",
                                    "arrow_config",
                                    "velora_config",
                                    "kasa_config",
                                    "layer_replication",
                                    "trainable_token_indices",
                                    "monteclora_config",
                                    "shared_config",
                                    "target_parameters"};
// Initialisations that subtract the adapter's first values from the base model's weights.
constexpr const char* kChangesBase[] = {"pissa", "olora", "corda", "loftq"};

bool is_set(const Json* value) {
  if (!value || value->is_null()) return false;
  if (value->is_boolean()) return value->get<bool>();
  return !(value->is_structured() || value->is_string()) || !value->empty();
}

Result<void> check_supported(const Json& json) {
  DP_TRY(const auto type, get_string(json, "peft_type"));
  if (type.value_or("") != "LORA") {
    return fail(ErrorKind::kUnsupported, "%s has the peft_type \"%s\"; only LORA is supported.", kWhat,
                printable(type.value_or("")).c_str());
  }
  for (const char* key : kRefused) {
    if (is_set(find(json, key))) {
      return fail(ErrorKind::kUnsupported, "%s asks for %s, which is not supported.", kWhat, key);
    }
  }
  const Json* init = find(json, "init_lora_weights");
  if (!init || !init->is_string()) return {};
  for (const char* key : kChangesBase) {
    if (!init->text().starts_with(key)) continue;
    return fail(
        ErrorKind::kUnsupported,
        "%s has init_lora_weights \"%s\", which changes the base model's weights; convert the adapter to "
        "a plain one with peft (path_initial_model_for_weight_conversion).",
        kWhat, printable(init->text()).c_str());
  }
  return {};
}

template <class T>
Result<std::vector<std::pair<ModulePattern, T>>> patterns_of(const Json& json, const char* key) {
  std::vector<std::pair<ModulePattern, T>> out;
  const Json* patterns = find(json, key);
  if (!patterns || patterns->is_null()) return out;
  if (!patterns->is_object() || patterns->size() > kMostPatterns) {
    return fail(ErrorKind::kInvalidInput, "%s must hold an object of at most %zu patterns for %s.", kWhat,
                kMostPatterns, key);
  }
  for (const Json::Member& member : patterns->items()) {
    if (!member.value.is_number()) {
      return fail(ErrorKind::kInvalidInput, "%s gives the pattern \"%s\" of %s no number.", kWhat,
                  printable(member.key).c_str(), key);
    }
    DP_TRY(ModulePattern pattern, ModulePattern::parse(member.key));
    out.emplace_back(std::move(pattern), static_cast<T>(member.value.template get<double>()));
  }
  return out;
}

Result<uint32_t> checked_rank(int64_t rank) {
  if (rank >= 1 && rank <= kMostAdapterRank) return static_cast<uint32_t>(rank);
  return fail(ErrorKind::kInvalidInput, "%s gives the rank %lld; allowed is 1 to %u.", kWhat,
              static_cast<long long>(rank), kMostAdapterRank);
}

Result<std::vector<uint32_t>> invocation_tokens_of(const Json& json) {
  std::vector<uint32_t> out;
  const Json* tokens = find(json, "alora_invocation_tokens");
  if (!tokens || tokens->is_null()) return out;
  for (const Json& token : *tokens) {
    const bool is_id = token.is_number_unsigned() && token.get<uint64_t>() < UINT32_MAX;
    if (!is_id || out.size() == kMostInvocationTokens) {
      return fail(ErrorKind::kInvalidInput, "%s must list at most %zu token ids as alora_invocation_tokens.",
                  kWhat, kMostInvocationTokens);
    }
    out.push_back(token.get<uint32_t>());
  }
  return out;
}

template <class T>
const T* first_match(const std::vector<std::pair<ModulePattern, T>>& patterns, std::string_view module) {
  for (const auto& [pattern, value] : patterns) {
    if (pattern.matches_end_of(module)) return &value;
  }
  return nullptr;
}

}  // namespace

uint32_t PeftConfig::rank_of(std::string_view module) const {
  const uint32_t* own = first_match(rank_pattern, module);
  return own ? *own : rank;
}

float PeftConfig::scale_of(std::string_view module, uint32_t of_rank) const {
  const double* own = first_match(alpha_pattern, module);
  const double divisor = uses_rslora ? std::sqrt(of_rank) : of_rank;
  return static_cast<float>((own ? *own : alpha) / divisor);
}

Result<PeftConfig> parse_peft_config(std::string_view text) {
  DP_TRY(const Json json, parse_json(text, kWhat));
  if (!json.is_object()) {
    return fail(ErrorKind::kInvalidInput, "%s must hold a JSON object, but it is %s.", kWhat,
                json.type_name());
  }
  DP_CHECK(check_supported(json));
  PeftConfig out;
  DP_TRY(const auto rank, get_integer(json, "r"));
  DP_TRY(out.rank, checked_rank(rank.value_or(out.rank)));
  DP_TRY(const auto alpha, get_number(json, "lora_alpha"));
  out.alpha = alpha.value_or(out.alpha);
  DP_TRY(out.rank_pattern, patterns_of<uint32_t>(json, "rank_pattern"));
  for (const auto& [pattern, value] : out.rank_pattern) DP_CHECK(checked_rank(value));
  DP_TRY(out.alpha_pattern, patterns_of<double>(json, "alpha_pattern"));
  DP_TRY(const auto rslora, get_bool(json, "use_rslora"));
  out.uses_rslora = rslora.value_or(false);
  DP_TRY(const auto dora, get_bool(json, "use_dora"));
  out.uses_dora = dora.value_or(false);
  DP_TRY(out.invocation_tokens, invocation_tokens_of(json));
  DP_TRY(const auto base, get_string(json, "base_model_name_or_path"));
  out.base = base.value_or("");
  return out;
}

}  // namespace doppler::formats
