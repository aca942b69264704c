// Anthropic's Messages: the body becomes an OpenAI body, the events become content blocks.
#include "base/text.h"
#include "openai/image_parts.h"
#include "server/routes.h"

namespace doppler::server {

using openai::AnswerEvent;
using openai::ChoiceAnswer;

namespace {

// Blocks of a system prompt that begin so change with each request and would undo the prefix cache.
constexpr std::string_view kBillingBlock = "x-anthropic-";

Unexpected wrong_messages_field(const char* field, const char* wanted, const Json& given) {
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be %s, but it is %s.", field, wanted,
              printable(to_text(given)).c_str());
}

// The texts of a text or of a list of text blocks.
Result<std::string> text_of(const Json& content, const char* field) {
  if (content.is_null()) return std::string();
  if (content.is_string()) return content.text();
  if (!content.is_array()) return wrong_messages_field(field, "a text or a list of blocks", content);
  std::string out;
  for (const Json& block : content) {
    DP_TRY(const auto type, get_string(block, "type"));
    DP_TRY(const auto text, get_string(block, "text"));
    if (type != "text" || !text) {
      return fail(ErrorKind::kUnsupported, "Field \"%s\" has a block of type \"%s\"; allowed is text.", field,
                  printable(type.value_or("")).c_str());
    }
    if (text->starts_with(kBillingBlock)) continue;
    out += (out.empty() ? "" : "\n") + *text;
  }
  return out;
}

// A block of type "image" as OpenAI's part.
Result<Json> image_part_of(const Json& block) {
  const Json* source = find(block, "source");
  if (!source) return wrong_messages_field("messages.content", "an image with a source", block);
  DP_TRY(const auto type, get_string(*source, "type"));
  DP_TRY(const auto media_type, get_string(*source, "media_type"));
  DP_TRY(const auto data, get_string(*source, "data"));
  if (type == "base64" && data) return openai::image_part(media_type.value_or("image"), *data);
  return fail(
      ErrorKind::kUnsupported,
      "An image's source is of type \"%s\"; allowed are base64, and url at hosts that the server allows "
      "(--allow-image-host).",
      printable(type.value_or("")).c_str());
}

// One message with blocks may be several of OpenAI's: a result of a tool is a message there.
Result<void> add_message(const Json& message, Json* out) {
  DP_TRY(const auto role, get_string(message, "role"));
  const Json* content = find(message, "content");
  if (!role || !content)
    return wrong_messages_field("messages", "a list of objects with role and content", message);
  if (!content->is_array()) {
    out->push_back({{"role", *role}, {"content", *content}});
    return {};
  }
  std::string text, reasoning;
  Json calls = Json::array(), parts = Json::array();
  bool has_images = false;
  for (const Json& block : *content) {
    DP_TRY(const auto type, get_string(block, "type"));
    if (type == "text") {
      DP_TRY(const auto piece, get_string(block, "text"));
      text += piece.value_or("");
      parts.push_back({{"type", "text"}, {"text", piece.value_or("")}});
    } else if (type == "image") {
      DP_TRY(Json part, image_part_of(block));
      parts.push_back(std::move(part));
      has_images = true;
    } else if (type == "thinking") {
      DP_TRY(const auto piece, get_string(block, "thinking"));
      reasoning += piece.value_or("");
    } else if (type == "redacted_thinking") {
      continue;
    } else if (type == "tool_use") {
      const Json* input = find(block, "input");
      const Json* id = find(block, "id");
      const Json* name = find(block, "name");
      calls.push_back(
          {{"id", id ? *id : Json("")},
           {"type", "function"},
           {"function", {{"name", name ? *name : Json()}, {"arguments", input ? *input : Json::object()}}}});
    } else if (type == "tool_result") {
      const Json* id = find(block, "tool_use_id");
      const Json* result = find(block, "content");
      DP_TRY(std::string told, text_of(result ? *result : Json(), "messages.content"));
      out->push_back({{"role", "tool"}, {"tool_call_id", id ? *id : Json("")}, {"content", std::move(told)}});
    } else {
      return fail(ErrorKind::kUnsupported,
                  "Field \"messages.content\" has a block of type \"%s\"; allowed are text, image, thinking, "
                  "tool_use "
                  "and tool_result.",
                  printable(type.value_or("")).c_str());
    }
  }
  if (text.empty() && calls.empty() && !has_images && *role != "assistant")
    return {};  // only results of tools
  Json made = {{"role", *role}, {"content", has_images ? std::move(parts) : Json(std::move(text))}};
  if (!reasoning.empty()) made["reasoning_content"] = std::move(reasoning);
  if (!calls.empty()) made["tool_calls"] = std::move(calls);
  out->push_back(std::move(made));
  return {};
}

Result<void> add_messages_tools(const Json& body, Json* out) {
  if (const Json* tools = find(body, "tools"); tools && !tools->is_null()) {
    if (!tools->is_array()) return wrong_messages_field("tools", "a list", *tools);
    Json list = Json::array();
    for (const Json& tool : *tools) {
      // Tools of another type run at Anthropic and are not here.
      const Json* schema = find(tool, "input_schema");
      const Json* name = find(tool, "name");
      if (!schema || !name) continue;
      Json function = {{"name", *name}, {"parameters", *schema}};
      if (const Json* description = find(tool, "description")) function["description"] = *description;
      list.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    (*out)["tools"] = std::move(list);
  }
  const Json* choice = find(body, "tool_choice");
  if (!choice || choice->is_null()) return {};
  DP_TRY(const auto one_call, get_bool(*choice, "disable_parallel_tool_use"));
  if (one_call) (*out)["parallel_tool_calls"] = !*one_call;
  DP_TRY(const auto type, get_string(*choice, "type"));
  DP_TRY(const auto name, get_string(*choice, "name"));
  if (type == "tool" && name) {
    (*out)["tool_choice"] = {{"type", "function"}, {"function", {{"name", *name}}}};
  } else if (type == "auto" || type == "none" || type == "any") {
    (*out)["tool_choice"] = *type == "any" ? "required" : *type;
  } else {
    return wrong_messages_field("tool_choice", "of type auto, any, none or tool", *choice);
  }
  return {};
}

// Reads the required form of the answer: {"type": "json_schema", "schema": {...}} as "output_config.format", or by its
// older name.
Result<void> add_format(const Json& body, Json* out) {
  const Json* format = find(body, "output_format");
  const char* field = "output_format";
  if (const Json* config = find(body, "output_config"); config && !config->is_null()) {
    if (!config->is_object()) return wrong_messages_field("output_config", "an object", *config);
    if (const Json* newer = find(*config, "format")) {
      format = newer;
      field = "output_config.format";
    }
  }
  if (!format || format->is_null()) return {};
  DP_TRY(const auto type, get_string(*format, "type"));
  const Json* schema = find(*format, "schema");
  if (type != "json_schema" || !schema)
    return wrong_messages_field(field, "of type json_schema, with a schema", *format);
  (*out)["response_format"] = {{"type", "json_schema"}, {"json_schema", {{"schema", *schema}}}};
  return {};
}

// The answer continues a last message of the assistant, unless it has calls.
bool is_beginning_of_answer(const Json& message) {
  const auto role = get_string(message, "role");
  return role && *role == "assistant" && !message.contains("tool_calls");
}

// The body as OpenAI's chats have it.
Result<Json> chat_body(const Json& body) {
  Json out = Json::object();
  for (const char* name : {"model", "max_tokens", "temperature", "top_p", "top_k", "stream"}) {
    if (const Json* value = find(body, name)) out[name] = *value;
  }
  if (const Json* stops = find(body, "stop_sequences")) out["stop"] = *stops;
  if (const Json* metadata = find(body, "metadata")) {
    if (const Json* user = find(*metadata, "user_id")) out["user"] = *user;
  }
  if (const Json* thinking = find(body, "thinking")) {
    DP_TRY(const auto type, get_string(*thinking, "type"));
    out["chat_template_kwargs"] = {{"enable_thinking", type != "disabled"}};
  }
  DP_CHECK(add_format(body, &out));
  Json messages = Json::array();
  if (const Json* system = find(body, "system")) {
    DP_TRY(std::string text, text_of(*system, "system"));
    if (!text.empty()) messages.push_back({{"role", "system"}, {"content", std::move(text)}});
  }
  const Json* list = find(body, "messages");
  if (!list || !list->is_array()) return wrong_messages_field("messages", "a list", list ? *list : Json());
  for (const Json& message : *list) DP_CHECK(add_message(message, &messages));
  DP_CHECK(add_messages_tools(body, &out));
  if (!messages.empty() && is_beginning_of_answer(messages.back())) {
    const Json* choice = find(out, "tool_choice");
    if (choice && (*choice == "required" || choice->is_object())) {
      return fail(
          ErrorKind::kInvalidInput,
          "Field \"messages\" ends with an assistant's text, which is continued, beside a \"tool_choice\" "
          "that begins the answer with a call.");
    }
    out["continue_final_message"] = true;
  }
  out["messages"] = std::move(messages);
  return out;
}

Result<openai::ServedRequest> read_messages(const Exchange& exchange, const GenerateOptions& defaults) {
  DP_TRY(const Json body, body_of(exchange));
  DP_TRY(const Json chat, chat_body(body));
  return openai::read_served(openai::Endpoint::kChatCompletions, chat, defaults);
}

Json usage_of_messages(const openai::Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.generated_tokens}};
}

const char* stop_reason(const ChoiceAnswer& answer) {
  if (answer.stop == StopReason::kTokenLimit || answer.stop == StopReason::kContextFull) return "max_tokens";
  if (!answer.calls.empty()) return "tool_use";
  return answer.stop == StopReason::kStopString ? "stop_sequence" : "end_turn";
}

class MessagesWriter : public openai::AnswerWriter {
 public:
  std::string begin(const openai::AnswerHead& head, uint32_t) override {
    const openai::Usage usage{.prompt_tokens = head.prompt_tokens};
    return event_text("message_start", {{"message", message(head, Json::array(), Json(), usage)}});
  }

  std::string event(uint32_t, const AnswerEvent& event, const ChoiceAnswer& answer) override {
    // A block must begin before its content.
    std::string out;
    switch (event.kind) {
      case AnswerEvent::Kind::kText:
        out = in_block(Block::kText, {{"type", "text"}, {"text", ""}});
        return out += delta({{"type", "text_delta"}, {"text", event.text}});
      case AnswerEvent::Kind::kReasoning:
        out = in_block(Block::kThinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
        return out += delta({{"type", "thinking_delta"}, {"thinking", event.text}});
      case AnswerEvent::Kind::kCall:
        out = close_block();
        return out += in_block(Block::kTool, {{"type", "tool_use"},
                                              {"id", "toolu_" + answer.calls.back().id},
                                              {"name", answer.calls.back().name},
                                              {"input", Json::object()}});
      case AnswerEvent::Kind::kArguments:
        return delta({{"type", "input_json_delta"}, {"partial_json", event.text}});
    }
    return {};
  }

  std::string end_choice(uint32_t, const ChoiceAnswer&) override { return close_block(); }

  std::string end(const std::vector<ChoiceAnswer>& choices, const openai::Usage& usage) override {
    return event_text("message_delta",
                      {{"delta", {{"stop_reason", stop_reason(choices[0])}, {"stop_sequence", nullptr}}},
                       {"usage", usage_of_messages(usage)}}) +
           event_text("message_stop", Json::object());
  }

  std::string error(const Error& error) override {
    return event_text("error", {{"error", {{"type", "api_error"}, {"message", error.sentence()}}}});
  }

  Json whole(const openai::AnswerHead& head, const std::vector<ChoiceAnswer>& choices,
             const openai::Usage& usage) override {
    const ChoiceAnswer& answer = choices[0];
    Json content = Json::array();
    if (!answer.reasoning.empty()) {
      content.push_back({{"type", "thinking"}, {"thinking", answer.reasoning}, {"signature", ""}});
    }
    if (!answer.text.empty()) content.push_back({{"type", "text"}, {"text", answer.text}});
    for (const openai::ToolCall& call : answer.calls) {
      const auto input = parse_json(call.arguments, "arguments");
      content.push_back({{"type", "tool_use"},
                         {"id", "toolu_" + call.id},
                         {"name", call.name},
                         {"input", input ? *input : Json::object()}});
    }
    return message(head, std::move(content), stop_reason(answer), usage);
  }

 private:
  enum class Block : uint8_t { kNone, kText, kThinking, kTool };

  static Json message(const openai::AnswerHead& head, Json content, Json stop, const openai::Usage& usage) {
    return {{"id", "msg_" + head.id},        {"type", "message"},
            {"role", "assistant"},           {"model", head.model},
            {"content", std::move(content)}, {"stop_reason", std::move(stop)},
            {"stop_sequence", nullptr},      {"usage", usage_of_messages(usage)}};
  }
  static std::string event_text(const char* name, Json fields) {
    Json event = {{"type", name}};
    event.update(fields);
    return std::string("event: ") + name + "\n" + openai::data_line(event);
  }
  std::string delta(Json delta) const {
    return event_text("content_block_delta", {{"index", index_}, {"delta", std::move(delta)}});
  }
  std::string close_block() {
    if (block_ == Block::kNone) return {};
    block_ = Block::kNone;
    return event_text("content_block_stop", {{"index", index_++}});
  }
  std::string in_block(Block block, Json content) {
    if (block_ == block) return {};
    std::string out = close_block();
    block_ = block;
    return out +
           event_text("content_block_start", {{"index", index_}, {"content_block", std::move(content)}});
  }

  Block block_ = Block::kNone;
  uint32_t index_ = 0;
};

}  // namespace

void answer_messages(Service& service, const Call& call) {
  service.generate(call.exchange, read_messages(*call.exchange, service.options().defaults),
                   std::make_unique<MessagesWriter>());
}

void answer_count_tokens(Service& service, const Call& call) {
  auto request = read_messages(*call.exchange, service.options().defaults);
  if (!request) return reply_error(*call.exchange, request.error());
  const std::string model = request->model;
  service.with_model(call.exchange, model,
                     [exchange = call.exchange, request = std::move(*request)](ReadyModel& ready) {
                       const auto chat = ready.start(request.chat, request.options.grammar);
                       if (!chat) return reply_error(*exchange, chat.error());
                       reply_json(*exchange, {{"input_tokens", chat->tokens.size()}});
                     });
}

}  // namespace doppler::server
