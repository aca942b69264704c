#include "guidance/guides.h"

#include <algorithm>
#include <unordered_map>

#include "base/json.h"
#include "base/text.h"
#include "guidance/gbnf.h"
#include "guidance/schema/rewrite.h"

namespace doppler::guidance {
namespace {

constexpr char kControlMark = '\xFF';  // before the bytes of a token that stands for no text
constexpr size_t kMostCompiled = 64;   // a compiled schema has some megabytes at most
constexpr size_t kMostGrammarBytes = 4u << 20;
constexpr size_t kMostForced = 256;  // tokens asked for at a time; the others come next
constexpr size_t kMostMessageBytes = 300;

// Blanks between the tokens of JSON, as long as no model writes for ever. In the library's words.
constexpr const char* kBlanks = R"([\x20\x0A\x0D\x09]{1,20})";

// The most successive digits in JSON, if the grammar lets another sign follow: a number has no end of its own, and
// small models go on for ever. 64-bit integers have 19 digits, and a double has 17 significant ones.
constexpr size_t kMostDigits = 20;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The library's message, as the end of a sentence: its first line, or the rest of the line that begins with "error: ".
std::string shown(const char* message) {
  constexpr std::string_view kReason = "\nerror: ";
  std::string_view text = message ? message : "unknown error";
  if (const size_t reason = text.find(kReason); reason != text.npos)
    text.remove_prefix(reason + kReason.size());
  text = trim(text.substr(0, text.find('\n')));
  while (text.ends_with('.')) text.remove_suffix(1);
  if (text.size() <= kMostMessageBytes) return printable(text, text.size());
  // Cut after a whole word.
  return printable(text.substr(0, text.rfind(' ', kMostMessageBytes)), kMostMessageBytes) + " ...";
}

Result<std::string> schema_text(const std::string& text, bool blanks) {
  DP_TRY(Json schema, parse_json(text, "The JSON schema"));
  if (!schema.is_object() && !schema.is_boolean())
    return fail(ErrorKind::kInvalidInput, "A JSON schema is an object, but this is %s.",
                printable(to_text(schema)).substr(0, 80).c_str());
  if (schema == Json(false)) return fail(ErrorKind::kInvalidInput, "The JSON schema false allows nothing.");
  if (schema.is_boolean()) schema = Json::object();
  DP_TRY(schema, rewrite_schema(schema));
  if (schema == Json(false)) return fail(ErrorKind::kInvalidInput, "The JSON schema allows nothing.");
  if (schema.is_boolean()) schema = Json::object();
  Json options = schema.contains("x-guidance") ? schema["x-guidance"] : Json::object();
  if (options.is_object() && !options.contains("whitespace_pattern") &&
      !options.contains("whitespace_flexible")) {
    if (blanks) {
      options["whitespace_pattern"] = kBlanks;
    } else {
      options["whitespace_flexible"] = false;
    }
    schema["x-guidance"] = std::move(options);
  }
  return to_text(schema);
}

const char* noun(GrammarKind kind) {
  switch (kind) {
    case GrammarKind::kJsonSchema:
      return "JSON schema";
    case GrammarKind::kRegex:
      return "regular expression";
    default:
      return "grammar";
  }
}

}  // namespace

// Texts as tokens: as the model learnt to write them, or else the longest tokens from the left.
class Spelling {
 public:
  explicit Spelling(const Vocabulary& vocabulary)
      : tokens_(vocabulary.tokens), tokenize_(vocabulary.tokenize) {
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (vocabulary.is_control[id] || tokens_[id].empty()) continue;
      by_bytes_.try_emplace(tokens_[id], static_cast<uint32_t>(id));
      longest_ = std::max(longest_, tokens_[id].size());
    }
    begin_with_digit_.resize((tokens_.size() + 31) / 32);
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (!tokens_[id].empty() && is_digit(tokens_[id].front())) begin_with_digit_[id / 32] |= 1u << id % 32;
    }
  }

  // The number of digits at the end of a text that ended with `before` digits and goes on with the token.
  size_t digits_behind(size_t before, uint32_t token) const {
    const std::string_view text = token < tokens_.size() ? std::string_view(tokens_[token]) : "";
    const auto rest = std::find_if_not(text.rbegin(), text.rend(), is_digit);
    const auto count = static_cast<size_t>(rest - text.rbegin());
    return count == text.size() ? before + count : count;
  }
  // Takes tokens that begin with a digit out, if others are left.
  void end_digits(std::vector<uint32_t>& mask) const {
    std::vector<uint32_t> others = mask;
    for (size_t i = 0; i < std::min(others.size(), begin_with_digit_.size()); ++i)
      others[i] &= ~begin_with_digit_[i];
    if (std::ranges::any_of(others, [](uint32_t word) { return word != 0; })) mask = std::move(others);
  }

  bool is_known() const { return tokenize_ != nullptr; }

  std::vector<uint32_t> tokens_of(std::string_view text) const {
    std::vector<uint32_t> out = tokenize_(text);
    std::string spelled;
    for (const uint32_t id : out) spelled += id < tokens_.size() ? tokens_[id] : "";
    return spelled == text ? out : longest_of(text);
  }

  // The library's callback: writes at most `room` tokens and gives how many there are.
  static size_t write_tokens(const void* self, const uint8_t* bytes, size_t count, uint32_t* out,
                             size_t room) {
    const std::vector<uint32_t> tokens =
        static_cast<const Spelling*>(self)->tokens_of({reinterpret_cast<const char*>(bytes), count});
    std::copy_n(tokens.begin(), std::min(room, tokens.size()), out);
    return tokens.size();
  }

 private:
  std::vector<uint32_t> longest_of(std::string_view text) const {
    std::vector<uint32_t> out;
    while (!text.empty()) {
      size_t count = std::min(longest_, text.size());
      auto found = by_bytes_.find(text.substr(0, count));
      while (found == by_bytes_.end() && count > 1) found = by_bytes_.find(text.substr(0, --count));
      if (found == by_bytes_.end()) return {};  // no token has this byte, so no text is forced
      out.push_back(found->second);
      text.remove_prefix(count);
    }
    return out;
  }

  const std::vector<std::string> tokens_;
  const std::function<std::vector<uint32_t>(std::string_view)> tokenize_;
  std::unordered_map<std::string_view, uint32_t> by_bytes_;  // of tokens_
  size_t longest_ = 1;
  std::vector<uint32_t> begin_with_digit_;  // a bit a token
};

Unexpected Matcher::failure(ErrorKind kind) const {
  return fail(kind, "The answer left its grammar: %s.",
              shown(library_->matcher_get_error(matcher_.get())).c_str());
}

Result<std::vector<uint32_t>> Matcher::allowed() {
  const size_t bytes = library_->matcher_get_mask_byte_size(matcher_.get());
  std::vector<uint32_t> mask(bytes / sizeof(uint32_t));
  if (library_->matcher_compute_mask_into(matcher_.get(), mask.data(), bytes) != 0)
    return failure(ErrorKind::kUnsupported);
  if (std::ranges::all_of(mask, [](uint32_t word) { return word == 0; }))
    return fail(ErrorKind::kUnsupported, "The grammar leaves the model no token that goes on.");
  if (ends_numbers_ && digits_ >= kMostDigits) spelling_->end_digits(mask);
  return mask;
}

Result<std::vector<uint32_t>> Matcher::forced() {
  std::vector<uint32_t> tokens(kMostForced);
  const int32_t count = library_->matcher_compute_ff_tokens(matcher_.get(), tokens.data(), tokens.size());
  if (count < 0) return failure(ErrorKind::kUnsupported);
  tokens.resize(static_cast<size_t>(count));
  return tokens;
}

Result<void> Matcher::accept(uint32_t token) {
  if (library_->matcher_consume_token(matcher_.get(), token) != 0) return failure(ErrorKind::kInternal);
  if (ends_numbers_) digits_ = spelling_->digits_behind(digits_, token);
  return {};
}

Matcher Matcher::clone() const {
  Matcher out(*library_, spelling_, tokenizer_, ends_numbers_, library_->clone_matcher(matcher_.get()));
  out.digits_ = digits_;
  return out;
}

Result<std::unique_ptr<Guides>> Guides::create(const Vocabulary& vocabulary) {
  DP_TRY(const Library* library, open_library());
  std::vector<uint32_t> lengths;
  std::string bytes;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const size_t begin = bytes.size();
    if (vocabulary.is_control[id]) bytes += kControlMark;
    bytes += vocabulary.tokens[id];
    lengths.push_back(static_cast<uint32_t>(bytes.size() - begin));
  }
  if (vocabulary.ends.empty())
    return fail(ErrorKind::kUnsupported, "The model has no end token; a grammar needs one.");
  const auto spelling = std::make_shared<const Spelling>(vocabulary);
  const LlgTokenizerInitV2 init{.struct_size = sizeof(init),
                                .vocab_size = static_cast<uint32_t>(lengths.size()),
                                .tok_eos = vocabulary.ends[0],
                                .token_lens = lengths.data(),
                                .token_bytes = reinterpret_cast<const uint8_t*>(bytes.data()),
                                // Parts of characters never reach the function.
                                .tokenize_assumes_string = true,
                                .tokenize_fn = spelling->is_known() ? Spelling::write_tokens : nullptr,
                                // No tokens are forced if the model's way to write a text is unknown.
                                .use_approximate_greedy_tokenize_fn = !spelling->is_known(),
                                .tokenize_user_data = spelling.get(),
                                .tok_eos_extra = vocabulary.ends.data() + 1,
                                .tok_eos_extra_count = static_cast<uint32_t>(vocabulary.ends.size() - 1)};
  char error[256] = "";
  LlgTokenizer* made = library->new_tokenizer_v2(&init, error, sizeof(error));
  if (!made)
    return fail(ErrorKind::kUnsupported, "Grammars cannot be had over this vocabulary: %s.",
                shown(error).c_str());
  return std::unique_ptr<Guides>(
      new Guides(*library, spelling, std::shared_ptr<LlgTokenizer>(made, library->free_tokenizer)));
}

Result<Matcher> Guides::compile(const Grammar& grammar) const {
  if (grammar.text.size() > kMostGrammarBytes || grammar.text.find('\0') != std::string::npos) {
    return fail(ErrorKind::kInvalidInput, "The %s has %zu bytes; allowed are %zu, and no NUL.",
                noun(grammar.kind), grammar.text.size(), kMostGrammarBytes);
  }
  std::string text = grammar.text;
  const char* kind = "lark";
  if (grammar.kind == GrammarKind::kJsonSchema) {
    kind = "json_schema";
    DP_TRY(text, schema_text(grammar.text, grammar.json_blanks));
  } else if (grammar.kind == GrammarKind::kRegex) {
    kind = "regex";
  } else if (is_gbnf(text)) {
    DP_TRY(text, gbnf_to_lark(grammar.text));
  } else {
    DP_TRY(text, rewrite_embedded_schemas(grammar.text));
  }
  LlgConstraintInit init = {};
  library_.constraint_init_set_defaults(&init, tokenizer_.get());
  init.log_stderr_level = 0;
  init.limits.verbose_errors = false;
  Matcher matcher(library_, spelling_, tokenizer_, grammar.kind == GrammarKind::kJsonSchema,
                  library_.new_matcher(&init, kind, text.c_str()));
  if (const char* error = library_.matcher_get_error(matcher.matcher_.get())) {
    return fail(ErrorKind::kInvalidInput, "The %s cannot be used: %s.", noun(grammar.kind),
                shown(error).c_str());
  }
  return matcher;
}

Result<Matcher> Guides::begin(const Grammar& grammar) {
  const auto copy = [this](const Matcher& of) {
    return Matcher(library_, spelling_, tokenizer_, of.ends_numbers_,
                   library_.clone_matcher(of.matcher_.get()));
  };
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(compiled_, [&](const Compiled& item) {
      return item.grammar.kind == grammar.kind && item.grammar.text == grammar.text &&
             item.grammar.json_blanks == grammar.json_blanks;
    });
    if (found != compiled_.end()) {
      compiled_.splice(compiled_.begin(), compiled_, found);
      return copy(found->matcher);
    }
  }
  auto compiled = compile(grammar);
  if (!compiled) {
    const std::string named = grammar.source.empty() ? "" : grammar.source + ": ";
    return fail(compiled.error().kind(), "%s%s", named.c_str(), compiled.error().sentence().c_str());
  }
  Matcher made = std::move(*compiled);
  Matcher begun = copy(made);
  const std::lock_guard lock(mutex_);
  compiled_.push_front({.grammar = grammar, .matcher = std::move(made)});
  if (compiled_.size() > kMostCompiled) compiled_.pop_back();
  return begun;
}

}  // namespace doppler::guidance
