// doppler tokenize and detokenize: only the model's tokenizer, without a GPU.
#include <cstdio>

#include "base/json.h"
#include "base/process.h"
#include "cli/common.h"
#include "cli/verbs.h"

namespace doppler::cli {
namespace {

std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : separator) + word;
  return out;
}

// The words, or the file, or standard input.
Result<std::string> given_text(const std::vector<std::string>& words, const std::string& file) {
  if (!words.empty()) return joined(words, " ");
  return read_text_file(file.empty() ? "-" : file);
}

// Ids apart by commas or white space: what tokenize prints, and what --tokens takes.
Result<std::vector<int32_t>> ids_of(std::string text) {
  for (char& c : text) {
    if (c == ',' || c == '[' || c == ']' || c == '\n' || c == '\r' || c == '\t') c = ' ';
  }
  std::string list;
  for (const std::string& word : split(text, ' ')) {
    if (!word.empty()) list += (list.empty() ? "" : ",") + word;
  }
  if (list.empty()) return std::vector<int32_t>();
  return parse_tokens(list);
}

Json pieces_json(const tokenizer::Tokenizer& tokenizer, std::span<const int32_t> ids) {
  Json pieces = Json::array();
  for (const int32_t id : ids) pieces.push_back(std::string(tokenizer.token_text(id)));
  return pieces;
}

}  // namespace

int tokenize_verb(std::span<const std::string> arguments) {
  std::string model, file;
  std::vector<std::string> words;
  bool no_special = false, parse_special = false, json = false;
  Args args("doppler tokenize [flags] [TEXT]",
            "Prints the token ids of a text (the words, --file or standard input), one a line.");
  args.words("TEXT", &words);
  args.name("model", 'm', "PATH", "GGUF file or Hugging Face folder (default: the shipped model)", &model);
  args.text("file", 'f', "FILE", "the text; - for standard input", &file);
  args.flag("no-special", 0, "without the tokens that the model wants around a text", &no_special);
  args.flag("parse-special", 0, "special tokens written out in the text become those tokens", &parse_special);
  args.flag("json", 0, "print one JSON object: tokens, pieces", &json);
  add_log_flag(args);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (!words.empty() && !file.empty()) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "Both --file and a text were given; one is needed."));
  }

  auto tokenizer = load_named_tokenizer(model);
  if (!tokenizer) return exit_failed(tokenizer.error());
  auto text = given_text(words, file);
  if (!text) return exit_failed(text.error());
  auto ids = (*tokenizer)->encode(*text, {.add_special = !no_special, .parse_special = parse_special});
  if (!ids) return exit_failed(ids.error());
  if (json) {
    const Json out = {{"tokens", *ids}, {"pieces", pieces_json(**tokenizer, *ids)}};
    std::printf("%s\n", to_text(out).c_str());
  } else {
    for (const int32_t id : *ids) std::printf("%d\n", id);
  }
  return 0;
}

int detokenize_verb(std::span<const std::string> arguments) {
  std::string model, file;
  std::vector<std::string> words;
  bool skip_special = false, json = false;
  Args args("doppler detokenize [flags] [IDS]",
            "Prints the text of token ids (the words, --file or standard input), apart by commas or spaces.");
  args.words("IDS", &words);
  args.name("model", 'm', "PATH", "GGUF file or Hugging Face folder (default: the shipped model)", &model);
  args.text("file", 'f', "FILE", "the ids; - for standard input", &file);
  args.flag("skip-special", 0, "special tokens give no text", &skip_special);
  args.flag("json", 0, "print one JSON object: text, pieces", &json);
  add_log_flag(args);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (!words.empty() && !file.empty()) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "Both --file and ids were given; one is needed."));
  }

  auto text = given_text(words, file);
  if (!text) return exit_failed(text.error());
  auto ids = ids_of(std::move(*text));
  if (!ids) return words.empty() ? exit_failed(ids.error()) : exit_usage(ids.error());
  auto tokenizer = load_named_tokenizer(model);
  if (!tokenizer) return exit_failed(tokenizer.error());
  auto decoded = (*tokenizer)->decode(*ids, {.skip_special = skip_special});
  if (!decoded) return exit_failed(decoded.error());
  if (json) {
    const Json out = {{"text", *decoded}, {"pieces", pieces_json(**tokenizer, *ids)}};
    std::printf("%s\n", to_text(out).c_str());
  } else {
    std::fwrite(decoded->data(), 1, decoded->size(), stdout);
    if (is_terminal(StandardStream::kOutput)) std::printf("\n");  // elsewhere the bytes are exactly the text
  }
  return 0;
}

}  // namespace doppler::cli
