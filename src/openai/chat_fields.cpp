#include "openai/chat_fields.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

namespace doppler::openai {
namespace {

bool is_absent(const Json& value) { return value.is_null() || (value.is_structured() && value.empty()); }

Unexpected wrong_chat_field(const char* field, const char* wanted, const Json& given) {
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be %s, but it is %s.", field, wanted,
              printable(to_text(given)).c_str());
}

// A text, or parts: texts that follow each other, and pictures. Without pictures the result is one text.
Result<Json> read_content(const Json& content, std::vector<Picture>& images) {
  if (content.is_null()) return Json("");
  if (content.is_string()) return content;
  if (!content.is_array()) return wrong_chat_field("messages.content", "a text or a list of parts", content);
  Json parts = Json::array();
  std::string all;
  const size_t images_before = images.size();
  for (const Json& part : content) {
    if (is_image_part(part)) {
      DP_TRY(Picture picture, read_image_part(part));
      images.push_back(std::move(picture));
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

// Templates read arguments as an object, and OpenAI's API carries the object's text. If a model wrote other text, this
// becomes the value of one argument, so that it stays visible and the conversation goes on.
Json read_arguments(const Json* given) {
  constexpr const char* kOther = "arguments";
  if (!given || given->is_null()) return Json::object();
  Json value = *given;
  // A model may write the text of a text.
  for (int i = 0; i < 2 && value.is_string(); ++i) {
    const auto& text = value.text();
    if (trim(text).empty()) return Json::object();
    auto parsed = parse_json(text, "arguments");
    if (!parsed) break;
    value = std::move(*parsed);
  }
  if (value.is_null()) return Json::object();
  return value.is_object() ? value : Json{{kOther, std::move(value)}};
}

Result<Json> read_call(const Json& call) {
  const Json* function = find(call, "function");
  if (!function || !function->is_object())
    return wrong_chat_field("messages.tool_calls", "a list of function calls", call);
  DP_TRY(const auto id, get_string(call, "id"));
  DP_TRY(const auto name, get_string(*function, "name"));
  if (!name) return wrong_chat_field("messages.tool_calls", "a list of calls with a name", call);
  return Json{{"id", id.value_or("")},
              {"type", "function"},
              {"function", {{"name", *name}, {"arguments", read_arguments(find(*function, "arguments"))}}}};
}

Result<Json> read_message(const Json& message, std::vector<Picture>& images) {
  static constexpr const char* kRoles[] = {"system", "developer", "user", "assistant", "tool"};
  if (!message.is_object()) return wrong_chat_field("messages", "a list of objects", message);
  DP_TRY(const auto role, get_string(message, "role"));
  if (!role || std::ranges::find(kRoles, *role) == std::end(kRoles)) {
    return fail(ErrorKind::kInvalidInput,
                "Field \"messages.role\" is \"%s\"; allowed are system, developer, user, assistant and tool.",
                printable(role.value_or("")).c_str());
  }
  const Json* content = find(message, "content");
  const Json* calls = find(message, "tool_calls");
  const bool has_calls = calls && !is_absent(*calls);
  if (!content && !has_calls) {
    return fail(ErrorKind::kInvalidInput, "Field \"messages.content\" is missing in a message of role %s.",
                role->c_str());
  }
  DP_TRY(Json shown, read_content(content ? *content : Json(), images));
  // Chat templates know the older name.
  Json out = {{"role", *role == "developer" ? "system" : *role}, {"content", std::move(shown)}};
  if (has_calls) {
    if (!calls->is_array()) return wrong_chat_field("messages.tool_calls", "a list", *calls);
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
  // Other servers call it "reasoning".
  if (const Json* reasoning = find(message, "reasoning");
      reasoning && reasoning->is_string() && !out.contains("reasoning_content"))
    out["reasoning_content"] = *reasoning;
  return out;
}

// Reads {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"function": {"name": "f"}}]}}. In
// Responses the outer object has the members of the inner one, and names stand without "function".
Result<std::set<std::string>> read_allowed(const Json& choice, ChatFields* out) {
  const Json* inner = find(choice, "allowed_tools");
  const Json& of = inner ? *inner : choice;
  DP_TRY(const auto mode, get_string(of, "mode"));
  const Json* tools = find(of, "tools");
  if ((mode != "auto" && mode != "required") || !tools || !tools->is_array() || tools->empty()) {
    return wrong_chat_field("tool_choice", "of mode \"auto\" or \"required\" and with a list of tools",
                            choice);
  }
  out->tool_choice = mode == "auto" ? ToolChoice::kAuto : ToolChoice::kRequired;
  std::set<std::string> names;
  for (const Json& tool : *tools) {
    const Json* function = find(tool, "function");
    DP_TRY(const auto name, get_string(function ? *function : tool, "name"));
    if (!name) return wrong_chat_field("tool_choice", "with a list of tools that have names", choice);
    names.insert(*name);
  }
  return names;
}

Result<void> read_tools(const Json& body, ChatFields* out) {
  const Json* choice = find(body, "tool_choice");
  std::optional<std::set<std::string>> allowed;  // no value: all
  if (choice && choice->is_string()) {
    const auto& text = choice->text();
    if (text != "auto" && text != "none" && text != "required") {
      return wrong_chat_field("tool_choice", "\"auto\", \"none\", \"required\" or a tool's name", *choice);
    }
    out->tool_choice = text == "auto"   ? ToolChoice::kAuto
                       : text == "none" ? ToolChoice::kNone
                                        : ToolChoice::kRequired;
  } else if (choice && find(*choice, "type") && *find(*choice, "type") == "allowed_tools") {
    DP_TRY(allowed, read_allowed(*choice, out));
  } else if (choice && !choice->is_null()) {
    const Json* function = find(*choice, "function");
    DP_TRY(const auto name, get_string(function ? *function : *choice, "name"));
    if (!name)
      return wrong_chat_field("tool_choice", "\"auto\", \"none\", \"required\" or a tool's name", *choice);
    out->tool_choice = ToolChoice::kNamed;
    out->tool_name = *name;
  }
  const Json* tools = find(body, "tools");
  if (!tools || is_absent(*tools)) return {};
  if (!tools->is_array()) return wrong_chat_field("tools", "a list", *tools);
  Json list = Json::array();
  bool has_named = out->tool_choice != ToolChoice::kNamed;
  std::set<std::string> left_out =
      allowed.value_or(std::set<std::string>());  // allowed names that no tool has
  for (const Json& tool : *tools) {
    const Json* function = find(tool, "function");
    DP_TRY(const auto name, get_string(function ? *function : Json(), "name"));
    if (!name) return wrong_chat_field("tools", "a list of functions with a name", tool);
    has_named |= *name == out->tool_name;
    if (allowed && !left_out.erase(*name) && !allowed->contains(*name)) continue;
    Json made = *function;
    // Templates read the properties, so there must be some object.
    const Json* parameters = find(made, "parameters");
    if (!parameters || is_absent(*parameters))
      made["parameters"] = {{"type", "object"}, {"properties", Json::object()}};
    list.push_back({{"type", "function"}, {"function", std::move(made)}});
  }
  if (!has_named) {
    return fail(ErrorKind::kInvalidInput, "Field \"tool_choice\" names \"%s\", which is none of the tools.",
                printable(out->tool_name).c_str());
  }
  if (!left_out.empty()) {
    return fail(ErrorKind::kInvalidInput, "Field \"tool_choice\" allows \"%s\", which is none of the tools.",
                printable(*left_out.begin()).c_str());
  }
  if (out->tool_choice != ToolChoice::kNone) out->tools = std::move(list);
  return {};
}

// Reads texts that the answer may draw on. Only templates that know them use them.
Result<void> read_documents(const Json& body, ChatFields* out) {
  const Json* documents = find(body, "documents");
  if (!documents || is_absent(*documents)) return {};
  const bool is_list = documents->is_array() && std::ranges::all_of(*documents, [](const Json& document) {
                         return document.is_object();
                       });
  if (!is_list) return wrong_chat_field("documents", "a list of objects", *documents);
  out->documents = *documents;
  return {};
}

constexpr const char *kContinues = "continue_final_message", *kOpens = "add_generation_prompt";

// Reads the fields of the prompt's end.
Result<void> read_ending(const Json& body, ChatFields* out) {
  DP_TRY(const auto continues, get_bool(body, kContinues));
  DP_TRY(const auto opens, get_bool(body, kOpens));
  out->continues = continues.value_or(false);
  out->opens_answer = opens.value_or(!out->continues);
  if (!out->continues) return {};
  if (out->opens_answer) {
    return fail(ErrorKind::kInvalidInput,
                "Field \"%s\" is true beside \"%s\": true; an answer goes on or begins, not both.",
                kContinues, kOpens);
  }
  const Json& last = out->messages.back();
  if (last["role"] != "assistant" || last.contains("tool_calls")) {
    return fail(ErrorKind::kInvalidInput,
                "Field \"%s\" is true, but the last message is not an assistant's text.", kContinues);
  }
  if (out->tool_choice == ToolChoice::kRequired || out->tool_choice == ToolChoice::kNamed) {
    return fail(ErrorKind::kInvalidInput,
                "Field \"%s\" is true beside a \"tool_choice\" that begins the answer with a call.",
                kContinues);
  }
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
  if (!arguments->is_object()) return wrong_chat_field("chat_template_kwargs", "an object", *arguments);
  // Arguments that the request has fields for are refused: they would be said twice.
  for (const auto& [name, value] : arguments->items()) {
    if (name == "messages" || name == "tools" || name == kOpens || name == kContinues)
      return wrong_chat_field("chat_template_kwargs", "about other variables", *arguments);
    out->template_arguments[name] = value;
  }
  return {};
}

}  // namespace

Result<Json> read_conversation(const Json& messages, std::vector<Picture>& images) {
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
  DP_CHECK(read_documents(body, &out));
  const Json* messages = find(body, "messages");
  DP_TRY(out.messages, read_conversation(messages ? *messages : Json(), out.images));
  DP_CHECK(read_ending(body, &out));
  return out;
}

}  // namespace doppler::openai
