#include "openai/completion_request.h"

#include <algorithm>
#include <iterator>

#include "base/json.h"
#include "openai/generate_fields.h"
#include "openai/grammar_fields.h"
#include "openai/token_probs.h"

namespace doppler::openai {
namespace {

// Fields without a say in the answer's text. null, [] and {} ask for nothing in any field.
struct Ignored {
  const char* name;
  const char* only;  // as JSON: the value that changes nothing; null: any value
};
constexpr Ignored kIgnored[] = {
    {"model", nullptr},  // the loaded one answers and is named in the answer
    {"user", nullptr},
    {"metadata", nullptr},
    {"store", nullptr},
    {"stream", nullptr},  // a batch has no reader who waits
    {"stream_options", nullptr},
    {"service_tier", nullptr},
    {"safety_identifier", nullptr},
    {"prompt_cache_key", nullptr},
    {"prompt_cache_retention", nullptr},
    {"echo", "false"},
    {"best_of", "1"},
    {"suffix", R"("")"},
    {"modalities", R"(["text"])"},
};

constexpr std::string_view kOfChats[] = {"messages",
                                         "documents",
                                         "max_completion_tokens",
                                         "tools",
                                         "tool_choice",
                                         "parallel_tool_calls",
                                         "continue_final_message",
                                         "add_generation_prompt",
                                         "chat_template_kwargs",
                                         "reasoning_effort"};

bool is_nothing(const Json& value) { return value.is_null() || (value.is_structured() && value.empty()); }

Result<void> check_field(Endpoint endpoint, const std::string& name, const Json& value) {
  const bool chat = endpoint == Endpoint::kChatCompletions;
  if (name == "prompt" ? !chat : chat && std::ranges::find(kOfChats, name) != std::end(kOfChats)) return {};
  if (name == "n" || is_generate_option(name) || is_grammar_field(name) || is_nothing(value)) return {};
  const auto ignored = std::ranges::find(kIgnored, name, &Ignored::name);
  if (ignored == std::end(kIgnored)) {
    std::vector<std::string> known = generate_option_names();
    known.emplace_back("n");
    known.emplace_back(chat ? "messages" : "prompt");
    const auto suggestion = nearest(name, known);
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" is not supported%s.", printable(name).c_str(),
                suggestion ? ("; did you mean \"" + *suggestion + "\"").c_str()
                           : " and would change the answer; leave it out");
  }
  if (!ignored->only) return {};
  DP_TRY(const Json only, parse_json(ignored->only, name));
  if (only == value) return {};
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" is %s; allowed is %s.", ignored->name,
              printable(to_text(value)).c_str(), ignored->only);
}

Result<void> read_options(const Json& body, CompletionRequest* out) {
  DP_CHECK(read_generate_options(body, &out->request.options));
  DP_CHECK(read_logprobs(out->endpoint, body, &out->request.options));
  DP_CHECK(read_grammar(body, &out->request.options.grammar));
  out->says_min_tokens = says(body, "min_tokens");
  return read_count(body, "n", 1, kMaxChoices, &out->choices);
}

Result<void> read_prompt(const Json& body, Request* request) {
  const Json* prompt = find(body, "prompt");
  if (prompt && prompt->is_string()) {
    request->prompt = prompt->text();
    return {};
  }
  if (!prompt || !prompt->is_array()) {
    return fail(ErrorKind::kInvalidInput, "Field \"prompt\" must be a text or a list of token ids.");
  }
  std::vector<int32_t> ids;
  for (const Json& id : *prompt) {
    const bool is_id = id.is_number_unsigned() && id.get<uint64_t>() <= INT32_MAX;
    if (!is_id) {
      return fail(ErrorKind::kInvalidInput,
                  "Field \"prompt\" has the item %s; allowed is one text, or a list of token ids.",
                  printable(to_text(id)).c_str());
    }
    ids.push_back(static_cast<int32_t>(id.get<uint64_t>()));
  }
  request->prompt = std::move(ids);
  return {};
}

}  // namespace

Result<CompletionRequest> read_completion(Endpoint endpoint, const Json& body,
                                          const GenerateOptions& defaults) {
  if (!body.is_object()) return fail(ErrorKind::kInvalidInput, "The body must be an object.");
  for (const auto& [name, value] : body.items()) DP_CHECK(check_field(endpoint, name, value));
  CompletionRequest out{.endpoint = endpoint, .request = {.prompt = {}, .options = defaults}};
  DP_CHECK(read_options(body, &out));
  if (const Json* model = find(body, "model"); model && model->is_string()) out.model = model->text();
  if (endpoint == Endpoint::kCompletions) {
    DP_CHECK(read_prompt(body, &out.request));
  } else {
    DP_TRY(out.chat, read_chat_fields(body));
  }
  return out;
}

}  // namespace doppler::openai
