#include "openai/served_request.h"

#include <algorithm>
#include <iterator>

#include "openai/generate_fields.h"
#include "openai/grammar_fields.h"
#include "openai/token_probs.h"

namespace doppler::openai {
namespace {

constexpr const char* kRead[] = {"model",
                                 "messages",
                                 "documents",
                                 "prompt",
                                 "max_completion_tokens",
                                 "n",
                                 "stream",
                                 "stream_options",
                                 "tools",
                                 "tool_choice",
                                 "parallel_tool_calls",
                                 "continue_final_message",
                                 "add_generation_prompt",
                                 "cache_prompt",
                                 "timings_per_token",
                                 "return_progress",
                                 "chat_template_kwargs",
                                 "reasoning_effort",
                                 "service_tier",
                                 "echo",
                                 "lora",
                                 "user",
                                 "safety_identifier"};

// Fields that OpenAI's clients send and that change nothing here.
constexpr const char* kHarmless[] = {"metadata", "store", "prompt_cache_key", "prompt_cache_retention"};

// Fields that are refused unless they ask for nothing.
struct Refused {
  const char* name;
  const char* only;  // as JSON: the value that asks for nothing, beside null, [] and {}
  const char* what;
};
constexpr Refused kRefused[] = {
    {"suffix", R"("")", "Text is not filled in before a suffix here."},
    {"best_of", "1", "Every choice is given; ask for them with \"n\"."},
    {"functions", "[]", "It is an old name; use \"tools\"."},
    {"function_call", R"("auto")", "It is an old name; use \"tool_choice\"."},
    {"modalities", R"(["text"])", "Only text is written here."},
    {"audio", "null", "Only text is written here."},
    {"web_search_options", "null", "Nothing is searched for here."},
};

bool is_unset(const Json& value) { return value.is_null() || (value.is_structured() && value.empty()); }

template <size_t N>
bool is_one_of(const char* const (&names)[N], std::string_view name) {
  return std::ranges::find(names, name) != std::end(names);
}

Result<void> check_field(const std::string& name, const Json& value, ServedRequest* out) {
  const bool is_read = is_one_of(kRead, name) || is_generate_option(name) || is_grammar_field(name);
  if (is_read || is_one_of(kHarmless, name) || is_unset(value)) return {};
  const auto refused = std::ranges::find(kRefused, name, &Refused::name);
  if (refused == std::end(kRefused)) {
    out->ignored.push_back(name);
    return {};
  }
  DP_TRY(const Json only, parse_json(refused->only, name));
  if (only == value) return {};
  return fail(ErrorKind::kUnsupported, "Field \"%s\" is %s. %s", refused->name,
              printable(to_text(value)).c_str(), refused->what);
}

Unexpected wrong(const char* field, const char* wanted, const Json& given) {
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be %s, but it is %s.", field, wanted,
              printable(to_text(given)).c_str());
}

Result<std::vector<int32_t>> read_ids(const Json& list) {
  std::vector<int32_t> ids;
  for (const Json& id : list) {
    const bool is_id = id.is_number_unsigned() && id.get<uint64_t>() <= INT32_MAX;
    if (!is_id) return wrong("prompt", "a text, a list of token ids, or a list of such", id);
    ids.push_back(static_cast<int32_t>(id.get<uint64_t>()));
  }
  return ids;
}

Result<void> read_prompts(const Json& body, ServedRequest* out) {
  const Json* prompt = find(body, "prompt");
  if (!prompt || !(prompt->is_string() || (prompt->is_array() && !prompt->empty()))) {
    return wrong("prompt", "a text, a list of token ids, or a list of such", prompt ? *prompt : Json());
  }
  const bool is_one = prompt->is_string() || prompt->front().is_number();
  const Json list = is_one ? Json::array({*prompt}) : *prompt;
  if (list.size() > kMaxPrompts) {
    return fail(ErrorKind::kInvalidInput, "Field \"prompt\" has %zu items; allowed are %u.", list.size(),
                kMaxPrompts);
  }
  for (const Json& item : list) {
    if (item.is_string()) {
      out->prompts.emplace_back(item.text());
    } else if (item.is_array()) {
      DP_TRY(std::vector<int32_t> ids, read_ids(item));
      out->prompts.emplace_back(std::move(ids));
    } else {
      return wrong("prompt", "a text, a list of token ids, or a list of such", item);
    }
  }
  return {};
}

Result<void> read_tier(const Json& body, int32_t* priority) {
  struct Tier {
    std::string_view name;
    int32_t priority;
  };
  constexpr Tier kTiers[] = {{"auto", kDefaultTier},
                             {"default", kDefaultTier},
                             {"flex", kFlexTier},
                             {"scale", kDefaultTier},
                             {"priority", kPriorityTier}};
  DP_TRY(const auto name, get_string(body, "service_tier"));
  if (!name) return {};
  const auto tier = std::ranges::find(kTiers, *name, &Tier::name);
  if (tier == std::end(kTiers)) {
    return wrong("service_tier", "auto, default, flex, scale or priority", Json(*name));
  }
  *priority = tier->priority;
  return {};
}

Result<void> read_flag(const Json& object, const char* name, bool* out) {
  DP_TRY(const auto value, get_bool(object, name));
  if (value) *out = *value;
  return {};
}

}  // namespace

Result<ServedRequest> read_served(Endpoint endpoint, const Json& body, const GenerateOptions& defaults) {
  if (!body.is_object()) return fail(ErrorKind::kInvalidInput, "The body must be an object.");
  ServedRequest out{.endpoint = endpoint, .options = defaults};
  for (const auto& [name, value] : body.items()) DP_CHECK(check_field(name, value, &out));
  DP_CHECK(read_generate_options(body, &out.options));
  DP_CHECK(read_logprobs(endpoint, body, &out.options));
  DP_CHECK(read_grammar(body, &out.options.grammar));
  DP_CHECK(read_count(body, "n", 1, kMaxChoices, &out.choices));
  DP_TRY(const auto model, get_string(body, "model"));
  out.model = model.value_or("");
  if (const Json* lora = find(body, "lora"); lora && !lora->is_null()) {
    DP_TRY(out.lora, read_lora(*lora));
  }
  DP_TRY(const auto seed, get_integer(body, "seed"));
  if (seed) out.seed = *seed == kRandomSeed ? ServedRequest::Seed::kRandom : ServedRequest::Seed::kGiven;
  out.says_min_tokens = says(body, "min_tokens");
  DP_CHECK(read_flag(body, "stream", &out.is_streamed));
  if (const Json* options = find(body, "stream_options"); options && !options->is_null()) {
    if (!options->is_object()) return wrong("stream_options", "an object", *options);
    DP_CHECK(read_flag(*options, "include_usage", &out.told.usage));
    DP_CHECK(read_count(*options, "chunk_tokens", 0, kMostChunkTokens, &out.options.batch));
  }
  DP_CHECK(read_flag(body, "timings_per_token", &out.told.timings));
  DP_CHECK(read_flag(body, "return_progress", &out.told.progress));
  DP_CHECK(read_flag(body, "cache_prompt", &out.caches_prompt));
  DP_CHECK(read_tier(body, &out.priority));
  DP_TRY(const auto user, get_string(body, "user"));
  DP_TRY(const auto identifier, get_string(body, "safety_identifier"));
  out.client = identifier ? *identifier : user.value_or("");
  if (endpoint == Endpoint::kCompletions) {
    DP_CHECK(read_flag(body, "echo", &out.echoes));
    DP_CHECK(read_prompts(body, &out));
    if (out.echoes && out.options.logprobs) {
      return fail(
          ErrorKind::kUnsupported,
          "Field \"logprobs\" is given beside \"echo\"; the log-probabilities of a prompt are not told.");
    }
    return out;
  }
  DP_TRY(out.chat, read_chat_fields(body));
  return out;
}

std::string field_of(std::string_view sentence) {
  constexpr std::string_view kFieldOpening = "Field \"";
  if (!sentence.starts_with(kFieldOpening)) return {};
  const std::string_view rest = sentence.substr(kFieldOpening.size());
  return std::string(rest.substr(0, rest.find('"')));
}

}  // namespace doppler::openai
