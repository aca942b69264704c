#include "openai/chat_fields.h"

#include <algorithm>
#include <iterator>

#include "openai/image_parts.h"

namespace doppler::openai {
namespace {

bool is_nothing(const Json& value) { return value.is_null() || (value.is_structured() && value.empty()); }

Unexpected wrong(const char* field, const char* wanted, const Json& given) {
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be %s, but it is %s.", field, wanted,
              printable(to_text(given)).c_str());
}

// A text, or parts: texts that follow each other, and pictures. Without pictures the result is one text.
Result<Json> read_content(const Json& content, std::vector<std::string>& images) {
  if (content.is_null()) return Json("");
  if (content.is_string()) return content;
  if (!content.is_array()) return wrong("messages.content", "a text or a list of parts", content);
  Json parts = Json::array();
  std::string all;
  const size_t images_before = images.size();
  for (const Json& part : content) {
    if (is_image_part(part)) {
      DP_TRY(std::string file, read_image_part(part));
      images.push_back(std::move(file));
      Json shown = Json::object();
      shown["type"] = "image";
      parts.push_back(std::move(shown));
      continue;
    }
    DP_TRY(const auto type, get_string(part, "type"));
    if (type != "text" && type != "input_text" && type != "output_text" && type != "refusal") {
      return fail(ErrorKind::kUnsupported,
                  "Field \"messages.content\" has a part of type \"%s\"; allowed are text and image_url.",
                  printable(type.value_or("")).c_str());
    }
    DP_TRY(const auto text, get_string(part, type == "refusal" ? "refusal" : "text"));
    all += text.value_or("");
    parts.push_back({{"type", "text"}, {"text", text.value_or("")}});
  }
  return images.size() == images_before ? Json(std::move(all)) : std::move(parts);
}

// Templates read arguments as an object; OpenAI's API carries them as its text.
Result<Json> read_call(const Json& call) {
  const Json* function = find(call, "function");
  if (!function || !function->is_object())
    return wrong("messages.tool_calls", "a list of function calls", call);
  DP_TRY(const auto id, get_string(call, "id"));
  DP_TRY(const auto name, get_string(*function, "name"));
  if (!name) return wrong("messages.tool_calls", "a list of calls with a name", call);
  Json arguments = Json::object();
  if (const Json* given = find(*function, "arguments"); given && given->is_object()) {
    arguments = *given;
  } else if (given && given->is_string()) {
    auto parsed = parse_json(given->text(), "arguments");
    arguments = parsed ? std::move(*parsed) : *given;
  }
  return Json{{"id", id.value_or("")},
              {"type", "function"},
              {"function", {{"name", *name}, {"arguments", std::move(arguments)}}}};
}

Result<Json> read_message(const Json& message, std::vector<std::string>& images) {
  static constexpr const char* kRoles[] = {"system", "developer", "user", "assistant", "tool"};
  if (!message.is_object()) return wrong("messages", "a list of objects", message);
  DP_TRY(const auto role, get_string(message, "role"));
  if (!role || std::ranges::find(kRoles, *role) == std::end(kRoles)) {
    return fail(ErrorKind::kInvalidInput,
                "Field \"messages.role\" is \"%s\"; allowed are system, developer, user, assistant and tool.",
                printable(role.value_or("")).c_str());
  }
  const Json* content = find(message, "content");
  const Json* calls = find(message, "tool_calls");
  const bool has_calls = calls && !is_nothing(*calls);
  if (!content && !has_calls) {
    return fail(ErrorKind::kInvalidInput, "Field \"messages.content\" is missing in a message of role %s.",
                role->c_str());
  }
  DP_TRY(Json shown, read_content(content ? *content : Json(), images));
  // Chat templates know the older name.
  Json out = {{"role", *role == "developer" ? "system" : *role}, {"content", std::move(shown)}};
  if (has_calls) {
    if (!calls->is_array()) return wrong("messages.tool_calls", "a list", *calls);
    out["tool_calls"] = Json::array();
    for (const Json& call : *calls) {
      DP_TRY(Json read, read_call(call));
      out["tool_calls"].push_back(std::move(read));
    }
  }
  for (const char* name : {"tool_call_id", "name", "reasoning_content"}) {
    DP_TRY(const auto value, get_string(message, name));
    if (value) out[name] = *value;
  }
  return out;
}

Result<void> read_tools(const Json& body, ChatFields* out) {
  const Json* choice = find(body, "tool_choice");
  if (choice && choice->is_string()) {
    const auto& text = choice->text();
    if (text != "auto" && text != "none" && text != "required") {
      return wrong("tool_choice", "\"auto\", \"none\", \"required\" or a tool's name", *choice);
    }
    out->tool_choice = text == "auto"   ? ToolChoice::kAuto
                       : text == "none" ? ToolChoice::kNone
                                        : ToolChoice::kRequired;
  } else if (choice && !choice->is_null()) {
    const Json* function = find(*choice, "function");
    DP_TRY(const auto name, get_string(function ? *function : *choice, "name"));
    if (!name) return wrong("tool_choice", "\"auto\", \"none\", \"required\" or a tool's name", *choice);
    out->tool_choice = ToolChoice::kNamed;
    out->tool_name = *name;
  }
  const Json* tools = find(body, "tools");
  if (!tools || is_nothing(*tools)) return {};
  if (!tools->is_array()) return wrong("tools", "a list", *tools);
  Json list = Json::array();
  bool has_named = out->tool_choice != ToolChoice::kNamed;
  for (const Json& tool : *tools) {
    const Json* function = find(tool, "function");
    DP_TRY(const auto name, get_string(function ? *function : Json(), "name"));
    if (!name) return wrong("tools", "a list of functions with a name", tool);
    has_named |= *name == out->tool_name;
    list.push_back({{"type", "function"}, {"function", *function}});
  }
  if (!has_named) {
    return fail(ErrorKind::kInvalidInput, "Field \"tool_choice\" names \"%s\", which is none of the tools.",
                printable(out->tool_name).c_str());
  }
  if (out->tool_choice != ToolChoice::kNone) out->tools = std::move(list);
  return {};
}

Result<void> read_template_arguments(const Json& body, ChatFields* out) {
  DP_TRY(const auto effort, get_string(body, "reasoning_effort"));
  if (effort) {
    out->template_arguments["reasoning_effort"] = *effort;
    out->template_arguments["enable_thinking"] = *effort != "none";
  }
  const Json* arguments = find(body, "chat_template_kwargs");
  if (!arguments || arguments->is_null()) return {};
  if (!arguments->is_object()) return wrong("chat_template_kwargs", "an object", *arguments);
  // What the request has fields for is not said twice.
  for (const auto& [name, value] : arguments->items()) {
    if (name == "messages" || name == "tools")
      return wrong("chat_template_kwargs", "about other variables", *arguments);
    out->template_arguments[name] = value;
  }
  return {};
}

}  // namespace

Result<Json> read_conversation(const Json& messages, std::vector<std::string>& images) {
  if (!messages.is_array() || messages.empty()) {
    return fail(ErrorKind::kInvalidInput, "Field \"messages\" must be a list of at least one message.");
  }
  Json out = Json::array();
  for (const Json& message : messages) {
    DP_TRY(Json read, read_message(message, images));
    out.push_back(std::move(read));
  }
  return out;
}

Result<ChatFields> read_chat_fields(const Json& body) {
  ChatFields out;
  DP_CHECK(read_tools(body, &out));
  DP_TRY(const auto parallel, get_bool(body, "parallel_tool_calls"));
  out.one_call = !parallel.value_or(true);
  DP_CHECK(read_template_arguments(body, &out));
  const Json* messages = find(body, "messages");
  DP_TRY(out.messages, read_conversation(messages ? *messages : Json(), out.images));
  return out;
}

}  // namespace doppler::openai
