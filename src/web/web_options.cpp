#include "web/web_options.h"

#include <charconv>

#include "base/json.h"
#include "web/web_adapters.h"

namespace doppler::web {
namespace {

Result<void> read(const Json& json, const char* key, std::string& out) {
  DP_TRY(auto value, get_string(json, key));
  if (value) out = std::move(*value);
  return {};
}
Result<void> read(const Json& json, const char* key, float& out) {
  DP_TRY(const auto value, get_number(json, key));
  if (value) out = static_cast<float>(*value);
  return {};
}
Result<void> read(const Json& json, const char* key, bool& out) {
  DP_TRY(const auto value, get_bool(json, key));
  if (value) out = *value;
  return {};
}
Result<void> read(const Json& json, const char* key, uint64_t& out) {
  DP_TRY(const auto value, get_integer(json, key));
  if (value && *value < 0) return fail(ErrorKind::kInvalidInput, "Option %s is negative.", key);
  if (value) out = static_cast<uint64_t>(*value);
  return {};
}
Result<void> read(const Json& json, const char* key, uint32_t& out) {
  uint64_t wide = out;
  DP_CHECK(read(json, key, wide));
  if (wide > UINT32_MAX)
    return fail(ErrorKind::kInvalidInput, "Option %s is larger than %u.", key, UINT32_MAX);
  out = static_cast<uint32_t>(wide);
  return {};
}
Result<void> read(const Json& json, const char* key, std::vector<std::string>& out) {
  const Json* list = find(json, key);
  if (!list) return {};
  for (const Json& entry : list->is_array() ? *list : Json::array({*list})) {
    if (!entry.is_string()) return fail(ErrorKind::kInvalidInput, "Option %s is not a list of texts.", key);
    out.push_back(entry.get<std::string>());
  }
  return {};
}
// {"15": -100}: OpenAI's shape.
Result<void> read(const Json& json, const char* key, std::vector<std::pair<int32_t, float>>& out) {
  const Json* biases = find(json, key);
  if (!biases) return {};
  if (!biases->is_object())
    return fail(ErrorKind::kInvalidInput, "Option %s is not an object of tokens and numbers.", key);
  for (const auto& [token, bias] : biases->items()) {
    int32_t id = -1;
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), id);
    if (error != std::errc() || end != token.data() + token.size() || id < 0 || !bias.is_number()) {
      return fail(ErrorKind::kInvalidInput, "Option %s has \"%s\": %s; token ids and numbers are allowed.",
                  key, printable(token).c_str(), printable(to_text(bias)).c_str());
    }
    out.emplace_back(id, bias.get<float>());
  }
  return {};
}

}  // namespace

Result<WebFiles> read_files(const Json& json) {
  WebFiles files;
  DP_CHECK(read(json, "root", files.root));
  DP_CHECK(read(json, "mainFile", files.main_file));
  DP_CHECK(read(json, "names", files.names));
  DP_CHECK(read(json, "set", files.set));
  return files;
}

Result<LoadOptions> read_load_options(const Json& json) {
  LoadOptions out;
  DP_CHECK(read(json, "lane", out.lane));
  DP_CHECK(read(json, "kv", out.kv));
  DP_CHECK(read(json, "draft", out.draft));
  DP_CHECK(read(json, "expertBytes", out.expert_bytes));
  DP_CHECK(read(json, "layerTableOnHost", out.layer_table_on_host));
  DP_CHECK(read(json, "ctxLen", out.ctx_len));
  DP_CHECK(read(json, "chunk", out.chunk));
  DP_CHECK(read(json, "chatTemplate", out.chat_template));
  DP_CHECK(read(json, "sequences", out.sequences));
  out.images = false;  // a tower takes memory that pages have little of
  DP_CHECK(read(json, "images", out.images));
  DP_CHECK(read(json, "mmproj", out.mmproj));
  DP_CHECK(read(json, "panAndScan", out.pan_and_scan));
  DP_CHECK(read(json, "poolTokens", out.pool_tokens));
  if (const Json* kernels = find(json, "kernels"); kernels && kernels->is_object()) {
    for (const auto& [operation, variant] : kernels->items()) {
      DP_CHECK(read(*kernels, operation.c_str(), out.kernels[operation]));
    }
  }
  return out;
}

Result<GenerateOptions> read_generate_options(const Json& json) {
  GenerateOptions out;
  SamplingOptions& s = out.sampling;
  DP_CHECK(read(json, "maxTokens", out.max_tokens));
  DP_CHECK(read(json, "temperature", s.temperature));
  DP_CHECK(read(json, "topK", s.top_k));
  DP_CHECK(read(json, "topP", s.top_p));
  DP_CHECK(read(json, "minP", s.min_p));
  DP_CHECK(read(json, "repeatPenalty", s.repeat_penalty));
  DP_CHECK(read(json, "presencePenalty", s.presence_penalty));
  DP_CHECK(read(json, "frequencyPenalty", s.frequency_penalty));
  DP_CHECK(read(json, "minTokens", s.min_tokens));
  DP_CHECK(read(json, "topNSigma", s.top_n_sigma));
  DP_CHECK(read(json, "typicalP", s.typical_p));
  DP_CHECK(read(json, "xtcProbability", s.xtc_probability));
  DP_CHECK(read(json, "xtcThreshold", s.xtc_threshold));
  DP_CHECK(read(json, "dynatempRange", s.dynatemp_range));
  DP_CHECK(read(json, "dynatempExponent", s.dynatemp_exponent));
  DP_CHECK(read(json, "mirostatTau", s.mirostat_tau));
  DP_CHECK(read(json, "mirostatEta", s.mirostat_eta));
  DP_CHECK(read(json, "dryMultiplier", s.dry_multiplier));
  DP_CHECK(read(json, "dryBase", s.dry_base));
  DP_CHECK(read(json, "dryAllowedLength", s.dry_allowed_length));
  DP_CHECK(read(json, "dryRange", s.dry_range));
  DP_CHECK(read(json, "dryBreakers", s.dry_breakers));
  DP_CHECK(read(json, "seed", s.seed));
  DP_CHECK(read(json, "logitBias", s.logit_bias));
  DP_CHECK(read(json, "stop", out.stop));
  DP_CHECK(read(json, "ignoreEos", out.ignore_eos));
  DP_CHECK(read(json, "batch", out.batch));
  DP_CHECK(read(json, "addSpecial", out.add_special));
  DP_CHECK(read(json, "logprobs", out.logprobs));
  DP_CHECK(read(json, "topLogprobs", out.top_logprobs));
  DP_CHECK(read(json, "draft", out.draft));
  DP_CHECK(read(json, "draftRows", out.draft_rows));
  DP_CHECK(read(json, "prediction", out.prediction));
  if (const Json* adapters = find(json, "adapters")) {
    DP_TRY(out.adapters, read_adapter_uses(*adapters));
  }
  std::string when_full = "stop";
  DP_CHECK(read(json, "whenFull", when_full));
  if (when_full != "stop" && when_full != "slide") {
    return fail(ErrorKind::kInvalidInput, "Option whenFull is \"%s\"; allowed are stop and slide.",
                printable(when_full).c_str());
  }
  out.when_full = when_full == "slide" ? WhenFull::kSlide : WhenFull::kStop;
  return out;
}

Result<EmbedOptions> read_embed_options(const Json& json) {
  EmbedOptions out;
  DP_CHECK(read(json, "dimensions", out.dimensions));
  DP_CHECK(read(json, "truncate", out.truncate));
  return out;
}

Result<std::vector<int32_t>> read_tokens(const Json& json, std::string_view key) {
  const Json* list = find(json, key);
  std::vector<int32_t> tokens;
  if (list && list->is_array()) {
    for (const Json& entry : *list) {
      const int64_t id = entry.is_number_integer() ? entry.get<int64_t>() : -1;
      if (id < 0 || id > UINT32_MAX) {
        return fail(ErrorKind::kInvalidInput, "A token is %s; token ids are whole numbers from 0.",
                    printable(to_text(entry)).c_str());
      }
      tokens.push_back(static_cast<int32_t>(static_cast<uint32_t>(id)));  // a picture's have the highest bit
    }
  }
  return tokens;
}

}  // namespace doppler::web
