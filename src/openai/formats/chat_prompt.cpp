#include "openai/formats/chat_prompt.h"

#include "base/json.h"
#include "base/text.h"

namespace doppler::openai {
namespace {

constexpr const char* kToldFormat = "hermes";  // told_tools.cpp asks for calls in this format

// For a request with a grammar and tools that may be called: an answer after its schema, or a call.
Result<Grammar> answer_or_call(const CallFormat* calls, const ChatFields& chat, const Grammar& given) {
  Grammar both;
  if (calls && given.kind == GrammarKind::kJsonSchema)
    both = call_grammar(*calls, chat.tools,
                        {.name = {}, .answer = &given.text, .json_blanks = given.json_blanks});
  if (both.kind == GrammarKind::kNone) {
    return fail(
        ErrorKind::kUnsupported,
        "%s is given beside tools, and the way in which this model calls tools cannot be part of it; use "
        "\"tool_choice\": \"none\" or \"required\".",
        given.source.c_str());
  }
  both.source = given.source;
  return both;
}

// The name of the tool that the model must call. Empty: any tool.
std::string forced_name(const ChatFields& chat) {
  if (chat.tool_choice == ToolChoice::kNamed || chat.tools.size() != 1) return chat.tool_name;
  const Json* function = find(chat.tools[0], "function");
  const auto name = get_string(function ? *function : Json(), "name");
  return name ? name->value_or("") : "";
}

// The prompt of a conversation whose last message is the answer's beginning. It is the template's text up to the end of
// this message. A word that no template and no conversation has marks the place.
Result<std::string> continued(ChatFields chat, const TemplateUse::Render& render) {
  constexpr std::string_view kMark = "doppler-goes-on-here-5d1c";
  Json& content = chat.messages.back()["content"];
  content = content.get<std::string>() + std::string(kMark);
  DP_TRY(std::string text, render(chat));
  const size_t at = text.rfind(kMark);
  if (at == std::string::npos) {
    return fail(ErrorKind::kUnsupported,
                "The last message is to be continued, but the model's chat template does not write it.");
  }
  text.resize(at);
  return text;
}

// Says whether the text that is continued ends within reasoning.
bool ends_in_reasoning(const Json& message, const ReasoningMarks& marks) {
  const auto content = get_string(message, "content");
  const std::string text = content ? content->value_or("") : "";
  const std::string_view closing = trim(marks.closing);
  return trim(text).starts_with(trim(marks.opening)) && text.find(closing) == std::string::npos;
}

}  // namespace

Result<ChatPrompt> chat_prompt(const ChatFields& chat, const Grammar& grammar, const TemplateUse& use) {
  const bool has_tools = chat.tools.is_array();
  const CallFormat* format = call_format_of(use.source);
  ChatPrompt out;
  out.tells_tools = has_tools && use.tell_tools && (!use.knows_tools || !format);
  if (out.tells_tools) format = call_format_named(kToldFormat);
  const bool reads_all = format && !format->answer_opening.empty();
  const CallFormat* calls = has_tools || reads_all ? format : nullptr;
  if (has_tools && !use.knows_tools && !out.tells_tools) {
    return fail(ErrorKind::kUnsupported,
                "Field \"tools\" is given, but the model's chat template knows no tools.");
  }
  const bool is_forced =
      has_tools && (chat.tool_choice == ToolChoice::kRequired || chat.tool_choice == ToolChoice::kNamed);
  if (is_forced && !calls) {
    return fail(
        ErrorKind::kUnsupported,
        "Field \"tool_choice\" asks for a call, but how the model writes one is not known; use \"auto\".");
  }
  ChatFields shown = chat;
  if (format && format->prepare) format->prepare(shown, use.source);
  const TemplateUse::Render told = [&](const ChatFields& of) { return use.tell_tools(of, use.render); };
  const TemplateUse::Render& render = out.tells_tools ? told : use.render;
  if (chat.continues) {
    DP_TRY(out.text, continued(std::move(shown), render));
  } else {
    DP_TRY(out.text, render(shown));
  }
  out.parser.calls = calls;
  out.parser.continues = chat.continues;
  if (has_tools) out.parser.tools = to_text(chat.tools);
  out.parser.one_call = chat.one_call;
  if (const ReasoningFormat* reasoning = reasoning_format_of(use.source)) {
    out.parser.reasoning = &reasoning->marks;
    out.parser.begins_in_reasoning = chat.continues
                                         ? ends_in_reasoning(chat.messages.back(), reasoning->marks)
                                         : trim(out.text).ends_with(trim(reasoning->marks.opening));
    out.shows_special = reasoning->shows_special;
  }
  if (calls) out.shows_special |= calls->shows_special;
  out.grammar = grammar;
  if (is_forced) {
    const std::string name = forced_name(chat);
    out.forced = calls->forced(name);
    out.grammar = call_grammar(*calls, chat.tools, {.name = name, .json_blanks = grammar.json_blanks});
  } else if (has_tools && out.grammar.kind != GrammarKind::kNone) {
    DP_TRY(out.grammar, answer_or_call(calls, chat, grammar));
  } else if (reads_all && !chat.continues && out.grammar.kind != GrammarKind::kNone) {
    out.forced = format->answer_opening;
  }
  // A grammar begins with the answer: there is no reasoning before it.
  if (out.parser.begins_in_reasoning && (is_forced || out.grammar.kind != GrammarKind::kNone)) {
    out.text += std::string(out.parser.reasoning->closing) + "\n\n";
    out.parser.begins_in_reasoning = false;
  }
  out.text += out.forced;
  return out;
}

}  // namespace doppler::openai
