#include "server/apis/responses_body.h"

#include "base/text.h"

namespace doppler::server {
namespace {

Unexpected wrong(const char* field, const char* wanted, const Json& given) {
  return fail(ErrorKind::kInvalidInput, "Field \"%s\" must be %s, but it is %s.", field, wanted,
              printable(to_text(given)).c_str());
}

Json member(const Json& object, const char* name, Json otherwise = {}) {
  const Json* found = find(object, name);
  return found && !found->is_null() ? *found : otherwise;
}

Result<void> add_item(const Json& item, Json* messages) {
  if (!item.is_object()) return wrong("input", "a text or a list of items", item);
  DP_TRY(const auto type, get_string(item, "type"));
  if (!type || *type == "message") {
    messages->push_back({{"role", member(item, "role", "user")}, {"content", member(item, "content", "")}});
  } else if (*type == "function_call") {
    const Json call = {
        {"id", member(item, "call_id", "")},
        {"type", "function"},
        {"function", {{"name", member(item, "name")}, {"arguments", member(item, "arguments", "{}")}}}};
    // Calls that follow each other were made at once.
    const bool goes_on = !messages->empty() && messages->back().contains("tool_calls");
    if (!goes_on)
      messages->push_back({{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array()}});
    messages->back()["tool_calls"].push_back(call);
  } else if (*type == "function_call_output") {
    messages->push_back({{"role", "tool"},
                         {"tool_call_id", member(item, "call_id", "")},
                         {"content", member(item, "output", "")}});
  } else if (*type != "reasoning") {
    return fail(ErrorKind::kUnsupported,
                "Field \"input\" has an item of type \"%s\"; allowed are message, function_call, "
                "function_call_output and "
                "reasoning.",
                printable(*type).c_str());
  }
  return {};
}

// Refuses fields that ask for features that are not here.
Result<void> check_refused(const Json& body) {
  for (const char* name : {"background", "conversation", "prompt", "top_logprobs"}) {
    const Json value = member(body, name);
    if (value.is_null() || value == false || value == 0) continue;
    return fail(ErrorKind::kUnsupported, "Field \"%s\" is not supported here.", name);
  }
  return {};
}

Result<void> add_tools(const Json& body, Json* chat) {
  const Json tools = member(body, "tools", Json::array());
  if (!tools.is_array()) return wrong("tools", "a list", tools);
  Json list = Json::array();
  for (const Json& tool : tools) {
    // Tools of other types run elsewhere; agents send them to every server.
    if (member(tool, "type") != "function") continue;
    Json function = {{"name", member(tool, "name")},
                     {"parameters", member(tool, "parameters", Json::object())}};
    if (const Json* description = find(tool, "description")) function["description"] = *description;
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  if (!list.empty()) (*chat)["tools"] = std::move(list);
  const Json choice = member(body, "tool_choice");
  if (choice.is_object() && member(choice, "type") == "function") {
    (*chat)["tool_choice"] = {{"type", "function"}, {"function", {{"name", member(choice, "name")}}}};
  } else if (choice.is_string()) {
    (*chat)["tool_choice"] = choice;
  }
  return {};
}

}  // namespace

Result<ResponsesRequest> read_responses(const Json& body, const ResponsesStore& store) {
  DP_CHECK(check_refused(body));
  ResponsesRequest out{.chat = Json::object(), .conversation = Json::array(), .shown = Json::object()};
  for (const char* name : {"model", "temperature", "top_p", "stream", "user", "safety_identifier", "seed",
                           "stop", "top_k", "min_p", "parallel_tool_calls", "service_tier"}) {
    if (const Json* value = find(body, name)) out.chat[name] = *value;
  }
  if (const Json limit = member(body, "max_output_tokens"); !limit.is_null()) out.chat["max_tokens"] = limit;
  if (const Json effort = member(member(body, "reasoning", Json::object()), "effort"); !effort.is_null()) {
    out.chat["reasoning_effort"] = effort;
  }
  const Json format = member(member(body, "text", Json::object()), "format", Json::object());
  if (!format.empty()) out.chat["response_format"] = format;
  DP_TRY(const auto previous, get_string(body, "previous_response_id"));
  if (previous) {
    auto stored = store.get(*previous);
    if (!stored) {
      return fail(ErrorKind::kInvalidInput,
                  "Field \"previous_response_id\" is \"%s\", which is not kept here.",
                  printable(*previous).c_str());
    }
    out.conversation = std::move(stored->messages);
  }
  const Json input = member(body, "input", "");
  if (input.is_string()) {
    out.conversation.push_back({{"role", "user"}, {"content", input}});
  } else if (input.is_array()) {
    for (const Json& item : input) DP_CHECK(add_item(item, &out.conversation));
  } else {
    return wrong("input", "a text or a list of items", input);
  }
  // Agents ask with nothing to see whether the server is there.
  if (out.conversation.empty()) out.conversation.push_back({{"role", "user"}, {"content", ""}});
  Json messages = Json::array();
  DP_TRY(const auto instructions, get_string(body, "instructions"));
  if (instructions && !instructions->empty())
    messages.push_back({{"role", "system"}, {"content", *instructions}});
  for (const Json& message : out.conversation) messages.push_back(message);
  out.chat["messages"] = std::move(messages);
  DP_CHECK(add_tools(body, &out.chat));
  DP_TRY(const auto stores, get_bool(body, "store"));
  out.is_stored = stores.value_or(true);
  for (const auto& [name, otherwise] : {std::pair<const char*, Json>{"instructions", Json()},
                                        {"max_output_tokens", Json()},
                                        {"metadata", Json::object()},
                                        {"parallel_tool_calls", true},
                                        {"previous_response_id", Json()},
                                        {"reasoning", Json::object()},
                                        {"temperature", Json()},
                                        {"text", Json{{"format", {{"type", "text"}}}}},
                                        {"tool_choice", "auto"},
                                        {"tools", Json::array()},
                                        {"top_p", Json()},
                                        {"truncation", "disabled"},
                                        {"store", true},
                                        {"user", Json()}}) {
    out.shown[name] = member(body, name, otherwise);
  }
  return out;
}

}  // namespace doppler::server
