#include "server/apis/responses_body.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "openai/generate_fields.h"
#include "openai/grammar_fields.h"

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

// Joins the texts of the parts that have this type.
std::string texts_of(const Json& parts, std::string_view type) {
  std::string out;
  if (!parts.is_array()) return out;
  for (const Json& part : parts) {
    if (member(part, "type") == type && member(part, "text").is_string()) out += part["text"].text();
  }
  return out;
}

// `reasoning`: the text of an item before. It belongs to the assistant's next message.
Result<void> add_item(const Json& item, std::string* reasoning, Json* messages) {
  const auto add = [&](Json message) {
    if (message["role"] == "assistant" && !reasoning->empty()) message["reasoning_content"] = *reasoning;
    reasoning->clear();
    messages->push_back(std::move(message));
  };
  if (!item.is_object()) return wrong("input", "a text or a list of items", item);
  DP_TRY(const auto type, get_string(item, "type"));
  if (!type || *type == "message") {
    add({{"role", member(item, "role", "user")}, {"content", member(item, "content", "")}});
  } else if (*type == "function_call") {
    const Json call = {
        {"id", member(item, "call_id", "")},
        {"type", "function"},
        {"function", {{"name", member(item, "name")}, {"arguments", member(item, "arguments", "{}")}}}};
    // Calls that follow each other were made at once.
    const bool goes_on = !messages->empty() && messages->back().contains("tool_calls");
    if (!goes_on) add({{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array()}});
    messages->back()["tool_calls"].push_back(call);
  } else if (*type == "function_call_output") {
    add({{"role", "tool"},
         {"tool_call_id", member(item, "call_id", "")},
         {"content", member(item, "output", "")}});
  } else if (*type == "reasoning") {
    *reasoning = texts_of(member(item, "content"), "reasoning_text");
  } else {
    return fail(ErrorKind::kUnsupported,
                "Field \"input\" has an item of type \"%s\"; allowed are message, function_call, "
                "function_call_output and "
                "reasoning.",
                printable(*type).c_str());
  }
  return {};
}

// Refuses fields that ask for a missing feature.
Result<void> check_refused(const Json& body) {
  for (const char* name : {"background", "conversation", "prompt"}) {
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
  } else if (choice.is_string() || member(choice, "type") == "allowed_tools") {
    (*chat)["tool_choice"] = choice;
  }
  return {};
}

// Fields that a chat has too, under the same name.
constexpr std::string_view kOfChats[] = {"model",
                                         "stream",
                                         "user",
                                         "safety_identifier",
                                         "parallel_tool_calls",
                                         "service_tier",
                                         "cache_prompt",
                                         "return_progress",
                                         "chat_template_kwargs",
                                         "timings_per_token",
                                         "documents"};
// Fields that this file reads, or that change nothing.
constexpr std::string_view kOwn[] = {"input",
                                     "instructions",
                                     "previous_response_id",
                                     "max_output_tokens",
                                     "max_tool_calls",
                                     "reasoning",
                                     "text",
                                     "tools",
                                     "tool_choice",
                                     "truncation",
                                     "include",
                                     "stream_options",
                                     "prompt_cache_retention",
                                     "prompt_cache_key",
                                     "background",
                                     "metadata",
                                     "store",
                                     "conversation",
                                     "prompt",
                                     "top_logprobs"};

void add_fields(const Json& body, ResponsesRequest* out) {
  for (const auto& [name, value] : body.items()) {
    if (std::ranges::find(kOwn, name) != std::end(kOwn)) continue;
    const bool is_known = std::ranges::find(kOfChats, name) != std::end(kOfChats) ||
                          openai::is_generate_option(name) || openai::is_grammar_field(name);
    if (is_known) {
      out->chat[name] = value;
    } else {
      out->ignored.push_back(name);
    }
  }
}

// A request asks for log-probabilities by their number, or by an entry of "include".
Result<void> add_logprobs(const Json& body, Json* chat) {
  constexpr const char* kIncluded = "message.output_text.logprobs";
  const Json top = member(body, "top_logprobs"), include = member(body, "include", Json::array());
  if (!include.is_array()) return wrong("include", "a list", include);
  const bool is_included = std::ranges::find(include, Json(kIncluded)) != include.end();
  if (!top.is_null()) (*chat)["top_logprobs"] = top;
  if (is_included || (!top.is_null() && top != 0)) (*chat)["logprobs"] = true;
  return {};
}

const char* id_prefix_of(const Json& type) {
  return type == "function_call"          ? "fc_"
         : type == "function_call_output" ? "fco_"
         : type == "reasoning"            ? "rs_"
                                          : "msg_";
}

// The input in the form of /v1/responses/ID/input_items.
Json items_of(const Json& input, const std::string& id) {
  Json out = Json::array();
  const Json list = input.is_string() ? Json::array({Json{{"role", "user"}, {"content", input}}}) : input;
  for (Json item : list) {
    const Json type = member(item, "type", "message");
    item["type"] = type;
    if (type == "message" && member(item, "content").is_string()) {
      const bool is_answer = member(item, "role") == "assistant";
      item["content"] =
          Json::array({Json{{"type", is_answer ? "output_text" : "input_text"}, {"text", item["content"]}}});
    }
    if (!item.contains("id")) item["id"] = id_prefix_of(type) + id + "_in" + std::to_string(out.size());
    out.push_back(std::move(item));
  }
  return out;
}

// In OpenAI's specification a function's fields are null unless the request gives them.
Json shown_tools(Json tools) {
  for (Json& tool : tools) {
    if (member(tool, "type") != "function") continue;
    for (const char* name : {"parameters", "strict"}) {
      if (!tool.contains(name)) tool[name] = Json();
    }
  }
  return tools;
}

}  // namespace

Result<ResponsesRequest> read_responses(const Json& body, const std::string& id,
                                        const ResponsesStore& store) {
  DP_CHECK(check_refused(body));
  ResponsesRequest out{
      .chat = Json::object(), .conversation = Json::array(), .shown = Json::object(), .items = Json::array()};
  add_fields(body, &out);
  DP_CHECK(add_logprobs(body, &out.chat));
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
    std::string reasoning;
    for (const Json& item : input) DP_CHECK(add_item(item, &reasoning, &out.conversation));
  } else {
    return wrong("input", "a text or a list of items", input);
  }
  out.items = items_of(input, id);
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
                                        {"top_logprobs", 0},
                                        {"top_p", Json()},
                                        {"truncation", "disabled"},
                                        {"store", true}}) {
    out.shown[name] = member(body, name, otherwise);
  }
  // It may be absent, but not null.
  if (const Json user = member(body, "user"); !user.is_null()) out.shown["user"] = user;
  out.shown["tools"] = shown_tools(out.shown["tools"]);
  return out;
}

}  // namespace doppler::server
