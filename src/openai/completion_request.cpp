#include "openai/completion_request.h"

#include <algorithm>
#include <iterator>

#include "base/json.h"

namespace doppler::openai {
namespace {

constexpr int64_t kMostTokens = INT32_MAX;

// Read from the body of either endpoint.
constexpr const char* kRead[] = {
    "max_tokens",       "temperature",       "top_p",      "top_k", "min_p",     "seed", "stop",
    "presence_penalty", "frequency_penalty", "logit_bias", "n",     "ignore_eos"};

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
    {"prediction", nullptr},           // makes answers faster, not other
    {"parallel_tool_calls", nullptr},  // says something about tools only
    {"tool_choice", R"("none")"},
    {"logprobs", "false"},
    {"top_logprobs", "0"},
    {"echo", "false"},
    {"best_of", "1"},
    {"suffix", R"("")"},
    {"response_format", R"({"type": "text"})"},
    {"modalities", R"(["text"])"},
};

bool is_nothing(const Json& value) { return value.is_null() || (value.is_structured() && value.empty()); }

Result<void> check_field(Endpoint endpoint, const std::string& name, const Json& value) {
  const bool chat = endpoint == Endpoint::kChatCompletions;
  if (name == (chat ? "messages" : "prompt") || (chat && name == "max_completion_tokens")) return {};
  if (std::ranges::find(kRead, name) != std::end(kRead) || is_nothing(value)) return {};
  const auto ignored = std::ranges::find(kIgnored, name, &Ignored::name);
  if (ignored == std::end(kIgnored)) {
    std::vector<std::string> known(std::begin(kRead), std::end(kRead));
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

Result<void> read_number(const Json& body, const char* key, float* out) {
  DP_TRY(const auto number, get_number(body, key));
  if (number) *out = static_cast<float>(*number);
  return {};
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

Result<void> read_limit(const Json& body, GenerateOptions* options) {
  uint32_t older = 0, newer = 0;
  DP_CHECK(read_count(body, "max_tokens", 1, kMostTokens, &older));
  DP_CHECK(read_count(body, "max_completion_tokens", 1, kMostTokens, &newer));
  if (older != 0 && newer != 0 && older != newer) {
    return fail(ErrorKind::kInvalidInput,
                "Fields \"max_tokens\" (%u) and \"max_completion_tokens\" (%u) mean the same and differ.",
                older, newer);
  }
  if (older != 0 || newer != 0) options->max_tokens = std::max(older, newer);
  return {};
}

Result<void> read_stop(const Json& body, GenerateOptions* options) {
  const Json* stop = find(body, "stop");
  if (!stop || stop->is_null()) return {};
  const Json list = stop->is_array() ? *stop : Json::array({*stop});
  options->stop.clear();
  for (const Json& text : list) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty()) {
      return fail(ErrorKind::kInvalidInput,
                  "Field \"stop\" has %s; allowed is a text that is not empty, or a list of such.",
                  printable(to_text(text)).c_str());
    }
    options->stop.push_back(text.get_ref<const std::string&>());
  }
  return {};
}

Result<void> read_bias(const Json& body, SamplingOptions* sampling) {
  const Json* biases = find(body, "logit_bias");
  if (!biases || biases->is_null()) return {};
  if (!biases->is_object()) {
    return fail(ErrorKind::kInvalidInput, "Field \"logit_bias\" must be an object, but it is %s.",
                biases->type_name());
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

Result<void> read_options(const Json& body, CompletionRequest* out) {
  GenerateOptions& options = out->request.options;
  SamplingOptions& s = options.sampling;
  DP_CHECK(read_number(body, "temperature", &s.temperature));
  DP_CHECK(read_number(body, "top_p", &s.top_p));
  DP_CHECK(read_number(body, "min_p", &s.min_p));
  DP_CHECK(read_number(body, "presence_penalty", &s.presence_penalty));
  DP_CHECK(read_number(body, "frequency_penalty", &s.frequency_penalty));
  DP_CHECK(read_count(body, "top_k", 0, INT32_MAX, &s.top_k));
  DP_CHECK(read_count(body, "n", 1, kMaxChoices, &out->choices));
  DP_TRY(const auto seed, get_integer(body, "seed"));
  if (seed) s.seed = static_cast<uint64_t>(*seed);
  DP_TRY(const auto ignore_eos, get_bool(body, "ignore_eos"));
  if (ignore_eos) options.ignore_eos = *ignore_eos;
  DP_CHECK(read_limit(body, &options));
  DP_CHECK(read_stop(body, &options));
  return read_bias(body, &s);
}

// A text, or parts of type "text", which follow each other.
Result<std::string> read_content(const Json& message) {
  const Json* content = find(message, "content");
  if (content && content->is_string()) return content->get_ref<const std::string&>();
  if (!content || !content->is_array()) {
    return fail(ErrorKind::kInvalidInput,
                "Field \"content\" of a message must be a text or a list of parts.");
  }
  std::string out;
  for (const Json& part : *content) {
    const Json* type = find(part, "type");
    const Json* text = find(part, "text");
    if (!type || *type != "text" || !text || !text->is_string()) {
      return fail(ErrorKind::kInvalidInput,
                  "A message has the part %s; allowed are {\"type\": \"text\", \"text\": \"...\"}.",
                  printable(to_text(part)).c_str());
    }
    out += text->get_ref<const std::string&>();
  }
  return out;
}

Result<Message> read_message(const Json& message) {
  static constexpr const char* kRoles[] = {"system", "developer", "user", "assistant", "tool"};
  if (!message.is_object()) return fail(ErrorKind::kInvalidInput, "A message must be an object.");
  DP_TRY(const auto role, get_string(message, "role"));
  if (!role || std::ranges::find(kRoles, *role) == std::end(kRoles)) {
    return fail(ErrorKind::kInvalidInput,
                "A message has the role \"%s\"; allowed are system, developer, user, assistant and tool.",
                printable(role.value_or("")).c_str());
  }
  for (const auto& [name, value] : message.items()) {
    if (name == "role" || name == "content" || is_nothing(value)) continue;
    return fail(ErrorKind::kInvalidInput,
                "Field \"%s\" of a message is not supported; allowed are role and content.",
                printable(name).c_str());
  }
  DP_TRY(std::string content, read_content(message));
  // Chat templates know the older name.
  return Message{.role = *role == "developer" ? "system" : *role, .content = std::move(content)};
}

Result<std::vector<Message>> read_messages(const Json& body) {
  const Json* list = find(body, "messages");
  if (!list || !list->is_array() || list->empty()) {
    return fail(ErrorKind::kInvalidInput, "Field \"messages\" must be a list of at least one message.");
  }
  std::vector<Message> messages;
  for (const Json& item : *list) {
    DP_TRY(Message message, read_message(item));
    messages.push_back(std::move(message));
  }
  return messages;
}

Result<void> read_prompt(const Json& body, Request* request) {
  const Json* prompt = find(body, "prompt");
  if (prompt && prompt->is_string()) {
    request->prompt = prompt->get_ref<const std::string&>();
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
  if (endpoint == Endpoint::kCompletions) {
    DP_CHECK(read_prompt(body, &out.request));
  } else {
    DP_TRY(out.request.prompt, read_messages(body));
  }
  return out;
}

}  // namespace doppler::openai
