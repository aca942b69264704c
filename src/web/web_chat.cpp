#include "web/web_chat.h"

#include <utility>

#include "openai/formats/chat_prompt.h"
#include "openai/grammar_fields.h"
#include "tokenizer/template/render_input.h"

namespace doppler::web {
namespace {

const char* kind_name(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonSchema:
      return "json-schema";
    case GrammarKind::kRegex:
      return "regex";
    case GrammarKind::kGrammar:
      return "grammar";
    case GrammarKind::kNone:
      break;
  }
  return "none";
}

const char* kind_name(openai::AnswerEvent::Kind kind) {
  switch (kind) {
    case openai::AnswerEvent::Kind::kReasoning:
      return "reasoning";
    case openai::AnswerEvent::Kind::kCall:
      return "call";
    case openai::AnswerEvent::Kind::kArguments:
      return "arguments";
    case openai::AnswerEvent::Kind::kText:
      break;
  }
  return "text";
}

Result<Grammar> read_asked(const Json& body, bool has_grammars) {
  Grammar asked;
  DP_CHECK(openai::read_grammar(body, &asked));
  if (asked.kind == GrammarKind::kNone || has_grammars) return asked;
  return fail(ErrorKind::kUnsupported,
              "%s is given, but the model was loaded without grammars: load(..., {grammars}).",
              asked.source.c_str());
}

Json grammar_json(const Grammar& grammar) {
  return {{"kind", kind_name(grammar.kind)}, {"text", grammar.text}, {"source", grammar.source}};
}

std::string events_text(const std::vector<openai::AnswerEvent>& events) {
  Json list = Json::array();
  for (const openai::AnswerEvent& event : events)
    list.push_back(Json::array({kind_name(event.kind), event.text}));
  return to_text(list);
}

}  // namespace

Result<Json> begin_chat(const engine::TextModel& text, const Json& body, bool has_grammars,
                        WebPictures& pictures) {
  if (!text.tokenizer) {
    return fail(ErrorKind::kUnsupported, "The model's tokenizer cannot be used (token ids can): %s",
                text.tokenizer_problem.c_str());
  }
  DP_TRY(const openai::ChatFields chat, openai::read_chat_fields(body));
  DP_TRY(const Grammar asked, read_asked(body, has_grammars));
  const auto render = [&](const openai::ChatFields& shown) {
    return engine::apply_chat_template(text, {.messages = shown.messages,
                                              .tools = shown.tools,
                                              .documents = shown.documents,
                                              .add_generation_prompt = shown.opens_answer,
                                              .extra = shown.template_arguments});
  };
  const engine::ModelTemplate& chosen =
      text.templates.choose(chat.tools.is_array(), chat.documents.is_array());
  const bool knows_tools = !chosen.parsed || chosen.parsed->mentions("tools");
  DP_TRY(const openai::ChatPrompt prompt,
         openai::chat_prompt(chat, asked,
                             {.source = chosen.source, .knows_tools = knows_tools, .render = render}));
  std::vector<uint32_t> tokens;
  if (chat.images.empty()) {  // the template writes the special tokens itself
    DP_TRY(const std::vector<int32_t> ids,
           text.tokenizer->encode(prompt.text, {.add_special = false, .parse_special = true}));
    tokens.assign(ids.begin(), ids.end());
  } else {
    DP_TRY(tokens, pictures.encode(prompt.text, chat.images));
  }
  Json out = {{"tokens", tokens},
              {"reading",
               {{"calls", prompt.parser.calls ? prompt.parser.calls->name : ""},
                {"begins", prompt.parser.begins_in_reasoning},
                {"continues", prompt.parser.continues},
                {"tools", prompt.parser.tools},
                {"one_call", prompt.parser.one_call},
                {"special", prompt.shows_special},
                {"forced", prompt.forced}}}};
  if (asked.kind != GrammarKind::kNone) out["grammar"] = grammar_json(prompt.grammar);
  return out;
}

Result<Json> read_grammar(const Json& body, bool has_grammars) {
  DP_TRY(const Grammar asked, read_asked(body, has_grammars));
  return grammar_json(asked);
}

Result<ChatReader> ChatReader::create(const engine::TextModel& text, const Json& reading) {
  DP_TRY(const auto calls, get_string(reading, "calls"));
  DP_TRY(const auto begins, get_bool(reading, "begins"));
  DP_TRY(const auto continues, get_bool(reading, "continues"));
  DP_TRY(auto tools, get_string(reading, "tools"));
  DP_TRY(const auto one_call, get_bool(reading, "one_call"));
  DP_TRY(const auto special, get_bool(reading, "special"));
  DP_TRY(auto forced, get_string(reading, "forced"));
  const bool has_tools = !tools.value_or("").empty();
  const openai::ReasoningFormat* reasoning =
      openai::reasoning_format_of(text.templates.choose(has_tools, /*has_documents=*/false).source);
  ChatReader out;
  out.parser_ = openai::OutputParser({.calls = openai::call_format_named(calls.value_or("")),
                                      .reasoning = reasoning ? &reasoning->marks : nullptr,
                                      .begins_in_reasoning = begins.value_or(false),
                                      .continues = continues.value_or(false),
                                      .tools = std::move(tools).value_or(""),
                                      .one_call = one_call.value_or(false)});
  out.forced_ = std::move(forced).value_or("");
  out.shows_special_ = special.value_or(false);
  return out;
}

std::string ChatReader::push(std::string_view text) {
  return events_text(parser_.push(std::exchange(forced_, {}) + std::string(text)));
}

std::string ChatReader::finish() {
  std::vector<openai::AnswerEvent> events = parser_.push(std::exchange(forced_, {}));
  for (openai::AnswerEvent& last : parser_.finish()) events.push_back(std::move(last));
  return events_text(events);
}

}  // namespace doppler::web
