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
    {"prediction", nullptr},           // makes answers faster, not other
    {"parallel_tool_calls", nullptr},  // says something about tools only
    {"tool_choice", R"("none")"},
    {"echo", "false"},
    {"best_of", "1"},
    {"suffix", R"("")"},
    {"modalities", R"(["text"])"},
};

bool is_nothing(const Json& value) { return value.is_null() || (value.is_structured() && value.empty()); }

Result<void> check_field(Endpoint endpoint, const std::string& name, const Json& value) {
  const bool chat = endpoint == Endpoint::kChatCompletions;
  if (name == (chat ? "messages" : "prompt") || (chat && name == "max_completion_tokens")) return {};
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
  return read_count(body, "n", 1, kMaxChoices, &out->choices);
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
  if (const Json* model = find(body, "model"); model && model->is_string())
    out.model = model->get_ref<const std::string&>();
  if (endpoint == Endpoint::kCompletions) {
    DP_CHECK(read_prompt(body, &out.request));
  } else {
    DP_TRY(out.request.prompt, read_messages(body));
  }
  return out;
}

}  // namespace doppler::openai
