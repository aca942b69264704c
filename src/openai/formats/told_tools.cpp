#include "openai/formats/told_tools.h"

#include "base/json.h"

namespace doppler::openai {
namespace {

std::string text_of(const Json& message) {
  const auto text = get_string(message, "content");
  return text ? text->value_or("") : "";
}

std::string told(const Json& tools) {
  std::string out = "These functions can be called:\n";
  for (const Json& tool : tools) out += to_text(tool["function"]) + "\n";
  return out +
         "To call one, write only\n<tool_call>\n{\"name\": \"NAME\", \"arguments\": {...}}\n</tool_call>\n"
         "with arguments after its parameters. What it gives is told between <tool_response> and "
         "</tool_response>.";
}

std::string joined(const std::string& first, const char* between, const std::string& second) {
  return first.empty() || second.empty() ? first + second : first + between + second;
}

// Turns earlier calls and results into text. A result becomes a user's message and joins a user's message beside it,
// since many templates want the two roles in turn.
Json without_calls(const Json& messages) {
  Json out = Json::array();
  bool was_result = false;
  for (const Json& message : messages) {
    Json made = message;
    const bool is_result = made["role"] == "tool";
    if (is_result)
      made = {{"role", "user"}, {"content", "<tool_response>\n" + text_of(message) + "\n</tool_response>"}};
    if (const Json* calls = find(message, "tool_calls")) {
      std::string text = text_of(message);
      for (const Json& call : *calls) {
        const Json& function = call["function"];
        text = joined(text, "\n",
                      "<tool_call>\n{\"name\": " + to_text(function["name"]) +
                          ", \"arguments\": " + to_text(function["arguments"]) + "}\n</tool_call>");
      }
      made.erase("tool_calls");
      made["content"] = std::move(text);
    }
    const bool is_user = made["role"] == "user";
    if (is_user && !out.empty() && out.back()["role"] == "user" && (is_result || was_result)) {
      out.back()["content"] = joined(text_of(out.back()), "\n", text_of(made));
    } else {
      out.push_back(std::move(made));
    }
    was_result = is_result;
  }
  return out;
}

// Puts the text in front of the first message of the role. Without such a message it becomes a new first one.
Json with_text(Json messages, const char* role, const std::string& text) {
  for (Json& message : messages) {
    if (message["role"] != role) continue;
    message["content"] = joined(text, "\n\n", text_of(message));
    return messages;
  }
  Json out = Json::array();
  out.push_back({{"role", role}, {"content", text}});
  for (Json& message : messages) out.push_back(std::move(message));
  return out;
}

}  // namespace

Result<std::string> render_told_tools(ChatFields chat,
                                      const std::function<Result<std::string>(const ChatFields&)>& render) {
  const std::string text = told(chat.tools);
  const Json messages = without_calls(chat.messages);
  chat.tools = Json();
  chat.messages = with_text(messages, "system", text);
  auto prompt = render(chat);
  if (prompt && prompt->find(text) != std::string::npos) return prompt;
  chat.messages = with_text(messages, "user", text);
  return render(chat);
}

}  // namespace doppler::openai
