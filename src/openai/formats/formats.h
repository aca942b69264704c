// The ways in which models mark calls of tools and reasoning. A model's chat template shows which way the model
// has: it writes earlier calls in the form that the model was trained to write. A format is a file beside this one and
// a row here.
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
  // A text in the source of templates whose models write it, beside `opening`; empty: only `opening`.
  std::string_view sign;
  std::string_view opening;
  bool opens_with_brace = false;  // an answer that begins with "{" is a call too
  bool shows_special = false;     // the marks are special tokens
  std::unique_ptr<CallReader> (*make_reader)(std::string_view tools);
  // The begin of a call up to the tool's name, and the text after the name.
  std::string_view before_name, behind_name;
  // For formats whose arguments are JSON, for call_grammar(): the text after the arguments; null: they are not JSON.
  const char* closing = nullptr;
  // behind_name is plain text, so that a grammar may leave the name to the model
  bool grammar_has_names = false;
  // For formats whose reader reads whole answers, from their first character: the opening of a text. Empty: other
  // formats.
  std::string_view answer_opening = {};
  // Changes the chat as templates of such models expect it; null: no change is needed.
  void (*prepare)(ChatFields& chat, std::string_view template_source) = nullptr;

  // A text after which the model can only go on with a call; `tool` empty: of any.
  std::string forced(std::string_view tool) const;
};

// Null: the template knows no format.
const CallFormat* call_format_of(std::string_view template_source);
const CallFormat* call_format_named(std::string_view name);

// A call grammar holds for the text after forced(name) to the end of one call: its name, if it is open, and arguments
// after the tool's schema. With `answer`, a schema, it holds for a whole call or such an answer. Kind kNone: the format
// has no such grammar.
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

// The makers of readers, a file for each way of writing.
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
