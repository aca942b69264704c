// Ollama's API: bodies become OpenAI bodies, events become lines of JSON. Durations are nanoseconds.
#include <ctime>

#include "base/text.h"
#include "openai/image_parts.h"
#include "server/generation.h"
#include "server/routes.h"

namespace doppler::server {

using openai::AnswerEvent;
using openai::ChoiceAnswer;
using openai::Endpoint;

namespace {

constexpr const char* kOllamaVersion =
    "0.12.6";  // the version of this API, since clients ask for a least one

Unexpected wrong_ollama_field(const char* field, const char* wanted, const Json& given) {
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be %s, but it is %s.", field, wanted,
              printable(to_text(given)).c_str());
}

bool is_nothing(const Json& value) {
  return value.is_null() || (value.is_structured() && value.empty()) || value == "" || value == false;
}

// Options that have another name there; the others are ours or are not known.
constexpr const char* kOptionNames[][2] = {{"num_predict", "max_tokens"}};
constexpr int kNoLimit = -1;  // of max_tokens
// Options about how a model is loaded, which is settled here when the server begins.
constexpr const char* kLoadOptions[] = {"num_ctx",       "num_batch", "num_gpu", "main_gpu",
                                        "num_thread",    "use_mmap",  "numa",    "num_keep",
                                        "repeat_last_n", "low_vram",  "f16_kv",  "use_mlock"};

// The part that the bodies of both endpoints share.
Result<Json> common_body(const Json& body) {
  Json out = {{"stream", true}};
  for (const char* name : {"model", "stream", "tools"}) {
    if (const Json* value = find(body, name); value && !value->is_null()) out[name] = *value;
  }
  if (const Json* format = find(body, "format"); format && !is_nothing(*format)) {
    if (*format != "json" && !format->is_object())
      return wrong_ollama_field("format", "\"json\" or a JSON schema", *format);
    out["response_format"] = format->is_object()
                                 ? Json{{"type", "json_schema"}, {"json_schema", {{"schema", *format}}}}
                                 : Json{{"type", "json_object"}};
  }
  if (const Json* think = find(body, "think"); think && !think->is_null()) {
    out["chat_template_kwargs"] = {{"enable_thinking", think->is_boolean() ? *think : Json(true)}};
    if (think->is_string()) out["reasoning_effort"] = *think;
  }
  const Json* options = find(body, "options");
  if (!options || options->is_null()) return out;
  if (!options->is_object()) return wrong_ollama_field("options", "an object", *options);
  for (const auto& [name, value] : options->items()) {
    std::string known = name;
    for (const auto& [theirs, ours] : kOptionNames) {
      if (name == theirs) known = ours;
    }
    bool is_of_loading = false;
    for (const char* load : kLoadOptions) is_of_loading |= name == load;
    // Any number below 1 means: until the model stops.
    const bool is_unlimited = known == "max_tokens" && value.is_number() && value.get<double>() < 1;
    if (!is_of_loading) out[known] = is_unlimited ? Json(kNoLimit) : value;
  }
  return out;
}

// Files in base64, then the text, as OpenAI's parts.
Result<Json> with_images(const Json& images, const Json* text) {
  if (!images.is_array()) return wrong_ollama_field("images", "a list of files in base64", images);
  Json parts = Json::array();
  for (const Json& image : images) {
    if (!image.is_string()) return wrong_ollama_field("images", "a list of files in base64", images);
    parts.push_back(openai::image_part("image", image.text()));
  }
  parts.push_back({{"type", "text"}, {"text", text && text->is_string() ? *text : Json("")}});
  return parts;
}

Result<Json> ollama_chat_body(const Json& body) {
  DP_TRY(Json out, common_body(body));
  const Json* messages = find(body, "messages");
  if (!messages || !messages->is_array())
    return wrong_ollama_field("messages", "a list", messages ? *messages : Json());
  out["messages"] = Json::array();
  for (const Json& message : *messages) {
    if (!message.is_object()) return wrong_ollama_field("messages", "a list of objects", message);
    Json made = message;
    if (const Json* images = find(message, "images"); images && !is_nothing(*images)) {
      DP_TRY(made["content"], with_images(*images, find(message, "content")));
      made.erase("images");
    }
    if (const Json* thinking = find(message, "thinking")) made["reasoning_content"] = *thinking;
    if (const Json* name = find(message, "tool_name")) made["name"] = *name;
    out["messages"].push_back(std::move(made));
  }
  // As in Ollama, the answer continues a last message of the assistant. A message with calls is complete.
  const Json* last_role = messages->empty() ? nullptr : find(messages->back(), "role");
  if (last_role && *last_role == "assistant") {
    const Json* calls = find(messages->back(), "tool_calls");
    if (!calls || is_nothing(*calls)) out["continue_final_message"] = true;
  }
  return out;
}

class LineWriter : public openai::AnswerWriter {
 public:
  explicit LineWriter(bool is_chat) : is_chat_(is_chat) {}

  std::string content_type() const override { return "application/x-ndjson"; }
  std::string begin(const openai::AnswerHead& head, uint32_t) override {
    head_ = head;
    return {};
  }

  // Calls have no pieces here: each is told when the next thing begins.
  std::string event(uint32_t, const AnswerEvent& event, const ChoiceAnswer& answer) override {
    switch (event.kind) {
      case AnswerEvent::Kind::kText:
        return calls(answer.calls.size(), answer) + line(is_chat_ ? "content" : "response", event.text);
      case AnswerEvent::Kind::kReasoning:
        return line("thinking", event.text);
      case AnswerEvent::Kind::kCall:
        return calls(answer.calls.size() - 1, answer);
      case AnswerEvent::Kind::kArguments:
        return {};
    }
    return {};
  }
  std::string end_choice(uint32_t, const ChoiceAnswer& answer) override {
    return calls(answer.calls.size(), answer);
  }
  std::string end(const std::vector<ChoiceAnswer>& choices, const openai::Usage& usage) override {
    return to_text(last(choices[0], usage, Json{{"role", "assistant"}, {"content", ""}}, "")) + "\n";
  }
  std::string error(const Error& error) override { return to_text(Json{{"error", error.sentence()}}) + "\n"; }

  Json whole(const openai::AnswerHead& head, const std::vector<ChoiceAnswer>& choices,
             const openai::Usage& usage) override {
    head_ = head;
    const ChoiceAnswer& answer = choices[0];
    Json message = {{"role", "assistant"}, {"content", answer.text}};
    for (const openai::ToolCall& call : answer.calls) message["tool_calls"].push_back(call_json(call));
    if (!answer.reasoning.empty()) message["thinking"] = answer.reasoning;
    Json out = last(answer, usage, std::move(message), answer.text);
    if (!is_chat_ && !answer.reasoning.empty()) out["thinking"] = answer.reasoning;
    return out;
  }

 private:
  Json head() const { return {{"model", head_.model}, {"created_at", utc_text(head_.created)}}; }

  std::string line(const char* field, const Json& value) const {
    Json out = head();
    if (is_chat_) {
      out["message"] = {{"role", "assistant"}, {"content", ""}};
      out["message"][field] = value;
    } else {
      out["response"] = "";
      out[field] = value;
    }
    out["done"] = false;
    return to_text(out) + "\n";
  }
  std::string calls(size_t count, const ChoiceAnswer& answer) {
    std::string out;
    for (; told_calls_ < count; ++told_calls_) {
      out += line("tool_calls", Json::array({call_json(answer.calls[told_calls_])}));
    }
    return out;
  }
  static Json call_json(const openai::ToolCall& call) {
    const auto arguments = parse_json(call.arguments, "arguments");
    return {{"id", call.id},
            {"function", {{"name", call.name}, {"arguments", arguments ? *arguments : Json::object()}}}};
  }
  Json last(const ChoiceAnswer& answer, const openai::Usage& usage, Json message,
            const std::string& text) const {
    const auto nanoseconds = [](double seconds) { return static_cast<int64_t>(seconds * 1e9); };
    const bool is_length = answer.stop == StopReason::kTokenLimit || answer.stop == StopReason::kContextFull;
    Json out = head();
    if (is_chat_) {
      out["message"] = std::move(message);
    } else {
      out["response"] = text;
    }
    out.update({{"done", true},
                {"done_reason", is_length ? "length" : "stop"},
                {"total_duration", nanoseconds(usage.total_seconds)},
                {"load_duration", 0},
                {"prompt_eval_count", usage.prompt_tokens},
                {"prompt_eval_duration", nanoseconds(usage.ttft_seconds - usage.queued_seconds)},
                {"eval_count", usage.generated_tokens},
                {"eval_duration", nanoseconds(usage.decode_seconds)}});
    return out;
  }

  const bool is_chat_;
  openai::AnswerHead head_;
  size_t told_calls_ = 0;
};

void generate(Service& service, const Call& call, Endpoint endpoint, bool is_chat, Result<Json> body) {
  if (!body) return reply_error(*call.exchange, body.error());
  auto request = openai::read_served(endpoint, *body, service.options().defaults);
  service.generate(call.exchange, std::move(request), std::make_unique<LineWriter>(is_chat));
}

// Writes "25.0M", as Ollama does.
std::string count_text(uint64_t count) {
  const auto number = static_cast<double>(count);
  if (number >= 1e9) return format_text("%.1fB", number / 1e9);
  return number >= 1e6 ? format_text("%.1fM", number / 1e6) : format_text("%.1fK", number / 1e3);
}

Json details_json(const ModelFacts& facts) {
  return {{"parent_model", ""},
          {"format", facts.format},
          {"family", facts.architecture},
          {"families", Json::array({facts.architecture})},
          {"parameter_size", count_text(facts.parameters)},
          {"quantization_level", facts.quantisation}};
}

Json tag_json(ModelHost& host) {
  const ModelFacts facts = host.facts();
  return {
      {"name", host.source().name}, {"model", host.source().name}, {"modified_at", utc_text(facts.modified)},
      {"size", facts.bytes},        {"digest", facts.digest},      {"details", details_json(facts)}};
}

Json capabilities_json(const ModelHost& host, const ModelFacts& facts) {
  Json out = Json::array();
  const bool tells_tools = host.source().unknown_tools == UnknownTools::kTold && !facts.chat_template.empty();
  if (facts.writes_text) out.push_back("completion");
  if (facts.writes_text && (facts.knows_tools || tells_tools)) out.push_back("tools");
  if (facts.reads_images) out.push_back("vision");
  if (facts.writes_text && facts.reasons) out.push_back("thinking");
  if (facts.gives_embeddings) out.push_back("embedding");
  return out;
}

// No prompt: the client wants the model loaded.
void reply_loaded(Service& service, const Call& call, const std::string& model, bool is_chat) {
  service.with_model(call.exchange, model, [exchange = call.exchange, model, is_chat](ReadyModel&) {
    Json out = {{"model", model},
                {"created_at", utc_text(std::time(nullptr))},
                {"done", true},
                {"done_reason", "load"}};
    if (is_chat) {
      out["message"] = {{"role", "assistant"}, {"content", ""}};
    } else {
      out["response"] = "";
    }
    reply_json(*exchange, out);
  });
}

}  // namespace

void answer_ollama_chat(Service& service, const Call& call) {
  const auto body = body_of(*call.exchange);
  if (!body) return reply_error(*call.exchange, body.error());
  const auto model = get_string(*body, "model");
  if (!model) return reply_error(*call.exchange, model.error());
  const Json* messages = find(*body, "messages");
  if (!messages || is_nothing(*messages)) return reply_loaded(service, call, model->value_or(""), true);
  generate(service, call, Endpoint::kChatCompletions, true, ollama_chat_body(*body));
}

void answer_ollama_generate(Service& service, const Call& call) {
  const auto body = body_of(*call.exchange);
  if (!body) return reply_error(*call.exchange, body.error());
  const auto model = get_string(*body, "model");
  if (!model) return reply_error(*call.exchange, model.error());
  const auto prompt = get_string(*body, "prompt");
  if (!prompt) return reply_error(*call.exchange, prompt.error());
  if (prompt->value_or("").empty()) return reply_loaded(service, call, model->value_or(""), false);
  for (const char* name : {"suffix", "template", "context"}) {
    const Json* value = find(*body, name);
    if (value && !is_nothing(*value)) {
      return reply_error(*call.exchange, Error(ErrorKind::kUnsupported,
                                               format_text("Field \"%s\" is not supported here.", name)));
    }
  }
  const auto raw = get_bool(*body, "raw");
  if (!raw) return reply_error(*call.exchange, raw.error());
  auto out = common_body(*body);
  if (!out) return reply_error(*call.exchange, out.error());
  const Json* images = find(*body, "images");
  const bool has_images = images && !is_nothing(*images);
  if (raw->value_or(false)) {
    if (has_images) {
      return reply_error(*call.exchange,
                         Error(ErrorKind::kUnsupported, "Field \"images\" is not supported with \"raw\"."));
    }
    (*out)["prompt"] = **prompt;
    return generate(service, call, Endpoint::kCompletions, false, std::move(out));
  }
  const Json* system = find(*body, "system");
  (*out)["messages"] = Json::array();
  if (system && !is_nothing(*system))
    (*out)["messages"].push_back({{"role", "system"}, {"content", *system}});
  Json content = **prompt;
  if (has_images) {
    auto parts = with_images(*images, &content);
    if (!parts) return reply_error(*call.exchange, parts.error());
    content = std::move(*parts);
  }
  (*out)["messages"].push_back({{"role", "user"}, {"content", std::move(content)}});
  generate(service, call, Endpoint::kChatCompletions, false, std::move(out));
}

void answer_ollama_tags(Service& service, const Call& call) {
  Json models = Json::array();
  for (const auto& host : service.models().all()) models.push_back(tag_json(*host));
  reply_json(*call.exchange, {{"models", std::move(models)}});
}

void answer_ollama_ps(Service& service, const Call& call) {
  Json models = Json::array();
  for (const auto& host : service.models().all()) {
    if (host->state() != ModelState::kReady) continue;
    Json item = tag_json(*host);
    item["size_vram"] = item["size"];
    item["expires_at"] = utc_text(std::time(nullptr) + 24 * 3600);
    item["context_length"] = host->info() ? host->info()->ctx_len : 0;
    models.push_back(std::move(item));
  }
  reply_json(*call.exchange, {{"models", std::move(models)}});
}

void answer_ollama_show(Service& service, const Call& call) {
  const auto body = body_of(*call.exchange);
  if (!body) return reply_error(*call.exchange, body.error());
  // Ollama's own program sends an empty "model" beside the older "name".
  std::string model;
  for (const char* field : {"name", "model"}) {
    auto text = get_string(*body, field);
    if (!text) return reply_error(*call.exchange, text.error());
    if (!text->value_or("").empty()) model = std::move(**text);
  }
  const auto host = service.admit(*call.exchange, model);
  if (!host) return;
  const ModelFacts facts = host->facts();
  const std::string& family = facts.architecture;
  reply_json(*call.exchange, {{"modelfile", ""},
                              {"parameters", ""},
                              {"template", facts.chat_template},
                              {"details", details_json(facts)},
                              {"model_info",
                               {{"general.architecture", family},
                                {"general.basename", host->source().name},
                                {"general.parameter_count", facts.parameters},
                                {family + ".block_count", facts.layers},
                                {family + ".context_length", facts.ctx_len},
                                {family + ".embedding_length", facts.dim}}},
                              {"modified_at", utc_text(facts.modified)},
                              {"capabilities", capabilities_json(*host, facts)}});
}

// Clients ask this to see whether the server is there.
void answer_ollama_running(Service&, const Call& call) {
  call.exchange->reply(200, "Ollama is running", "text/plain; charset=utf-8");
}

void answer_ollama_version(Service&, const Call& call) {
  reply_json(*call.exchange, {{"version", kOllamaVersion}});
}

}  // namespace doppler::server
