// The ways in which models mark calls of tools and reasoning. Which one a model has, its chat template shows: it writes
// earlier calls in the form that the model was trained to write. A format is a file beside this one and a row here.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "doppler/doppler.h"
#include "openai/chat_fields.h"
#include "openai/formats/output_parser.h"

namespace doppler::openai {

struct CallFormat {
  const char* name;
  // In the source of templates whose models write it, beside `opening`; empty: `opening` alone.
  std::string_view sign;
  std::string_view opening;
  bool opens_with_brace = false;  // an answer that begins with "{" is a call too
  bool shows_special = false;     // the marks are special tokens
  std::unique_ptr<CallReader> (*make_reader)(std::string_view tools);
  // What a call begins with up to the tool's name, and what goes on behind it.
  std::string_view before_name, behind_name;
  // Of formats whose arguments are JSON, for call_grammar(): what is behind these; null: they are none.
  const char* closing = nullptr;
  bool grammar_has_names =
      false;  // behind_name is plain text, so that a grammar may leave the name to the model
  // Of formats whose reader reads whole answers, from their first character: what opens a text. Empty: the others.
  std::string_view answer_opening = {};
  // Makes the chat what templates of such models expect; null: nothing is to be made.
  void (*prepare)(ChatFields& chat, std::string_view template_source) = nullptr;

  // The text behind which the model can only go on with a call; `tool` empty: of any.
  std::string forced(std::string_view tool) const;
};

// Null: the template knows none of them.
const CallFormat* call_format_of(std::string_view template_source);
const CallFormat* call_format_named(std::string_view name);

// What goes on behind forced(name) to the end of one call: its name, if it is open, and arguments after the tool's
// schema. With `answer`, a schema, instead: a whole call or such an answer. Kind kNone: the format has no such grammar.
struct CallGrammarUse {
  std::string_view name;
  const std::string* answer = nullptr;
  bool json_blanks = false;  // Grammar::json_blanks
};
Grammar call_grammar(const CallFormat& format, const Json& tools, const CallGrammarUse& use);

struct ReasoningFormat {
  ReasoningMarks marks;
  bool shows_special = false;
};
const ReasoningFormat* reasoning_format_of(std::string_view template_source);

// What makes readers, a file for each way of writing.
std::unique_ptr<CallReader> make_hermes_reader(std::string_view tools);
std::unique_ptr<CallReader> make_qwen_xml_reader(std::string_view tools);
std::unique_ptr<CallReader> make_seed_reader(std::string_view tools);
std::unique_ptr<CallReader> make_minimax_reader(std::string_view tools);
std::unique_ptr<CallReader> make_llama3_reader(std::string_view tools);
std::unique_ptr<CallReader> make_mistral_reader(std::string_view tools);
std::unique_ptr<CallReader> make_nemotron_reader(std::string_view tools);
std::unique_ptr<CallReader> make_function_gemma_reader(std::string_view tools);
std::unique_ptr<CallReader> make_gemma4_reader(std::string_view tools);
std::unique_ptr<CallReader> make_glm_reader(std::string_view tools);
std::unique_ptr<CallReader> make_deepseek_reader(std::string_view tools);
std::unique_ptr<CallReader> make_kimi_reader(std::string_view tools);
std::unique_ptr<CallReader> make_lfm2_reader(std::string_view tools);
std::unique_ptr<CallReader> make_harmony_reader(std::string_view tools);
void prepare_deepseek(ChatFields& chat, std::string_view template_source);
void prepare_lfm2(ChatFields& chat, std::string_view template_source);
void prepare_harmony(ChatFields& chat, std::string_view template_source);

}  // namespace doppler::openai
