// doppler embed: vectors of texts, of a model that gives embeddings.
#include "engine/embed.h"

#include <cstdio>

#include "base/base64.h"
#include "base/bytes.h"
#include "base/json.h"
#include "cli/common.h"
#include "cli/verbs.h"
#include "engine/model_options.h"

namespace doppler::cli {
namespace {

struct EmbedFlags {
  ModelFlags model;
  EmbedOptions options;
  std::vector<std::string> words;
  std::vector<std::vector<int32_t>> tokens;
  std::string input, out, format = "f32";
  bool json = false;
};

// A text, or its tokens.
struct Input {
  std::string text;
  std::optional<std::vector<int32_t>> tokens;
};

// A line of --input: a text, a list of token ids, or an object with one of both.
Result<Input> input_of_line(const Json& line) {
  const Json* value = &line;
  for (const char* key : {"input", "text", "tokens"}) {
    if (const Json* member = line.is_object() ? find(line, key) : nullptr) value = member;
  }
  if (value->is_string()) return Input{.text = value->get<std::string>(), .tokens = {}};
  Input out{.text = {}, .tokens = std::vector<int32_t>()};
  bool is_ids = value->is_array();
  for (const Json& id : is_ids ? *value : Json::array()) {
    is_ids = is_ids && id.is_number_integer();
    if (is_ids) out.tokens->push_back(id.get<int32_t>());
  }
  if (is_ids) return out;
  return fail(
      ErrorKind::kInvalidInput,
      "A line must be a text, a list of token ids, or an object with \"input\", \"text\" or \"tokens\".");
}

Result<std::vector<Input>> read_inputs(const EmbedFlags& flags) {
  std::vector<Input> out;
  for (const std::vector<int32_t>& ids : flags.tokens) out.push_back({.text = {}, .tokens = ids});
  for (const std::string& text : flags.words) out.push_back({.text = text, .tokens = {}});
  if (flags.input.empty()) return out;
  DP_TRY(const std::string file, read_text_file(flags.input));
  size_t number = 0;
  for (const std::string& line : split(file, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const std::string place = format_text("line %zu of %s", number, flags.input.c_str());
    DP_TRY(const Json parsed, parse_json(line, place));
    auto input = input_of_line(parsed);
    DP_CHECK_WHILE(input, "reading %s", place.c_str());
    out.push_back(std::move(*input));
  }
  if (out.empty())
    return fail(ErrorKind::kInvalidInput, "%s has no text; a line with one is needed.", flags.input.c_str());
  return out;
}

// NumPy's format, version 1: f32 [texts, dimensions], little endian.
std::string npy_of(const std::vector<Embedding>& embeddings) {
  constexpr size_t kAlignment = 64, kBefore = 10;
  std::string header = format_text("{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }",
                                   embeddings.size(), embeddings.front().values.size());
  while ((kBefore + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xFF);
  out += static_cast<char>(header.size() >> 8);
  out += header;
  for (const Embedding& embedding : embeddings) {
    const std::span<const uint8_t> bytes = bytes_of(embedding.values);
    out.append(bytes.begin(), bytes.end());
  }
  return out;
}

std::string text_of(const Embedding& embedding) {
  std::string out;
  for (const float value : embedding.values)
    out += format_text(out.empty() ? "%.9g" : " %.9g", double{value});
  return out + "\n";
}

Json json_of(const EmbedFlags& flags, const Embedding& embedding) {
  Json out = {{"tokens", embedding.tokens}, {"dimensions", embedding.values.size()}};
  if (flags.format == "base64") {
    out["embedding"] = base64(bytes_of(embedding.values));
  } else {
    out["embedding"] = embedding.values;
  }
  if (!flags.model.preset.used.name.empty()) out["preset"] = bench::preset_json(flags.model.preset.used);
  return out;
}

std::string output_of(const EmbedFlags& flags, const std::vector<Embedding>& embeddings) {
  if (flags.format == "npy") return npy_of(embeddings);
  std::string out;
  for (const Embedding& embedding : embeddings) {
    if (flags.json) {
      out += to_text(json_of(flags, embedding)) + "\n";
    } else if (flags.format == "base64") {
      out += base64(bytes_of(embedding.values)) + "\n";
    } else {
      out += text_of(embedding);
    }
  }
  return out;
}

Result<void> embed(const EmbedFlags& flags, const std::vector<Input>& inputs) {
  // What is not there is said before anything is loaded.
  if (flags.model.load.pooling.empty()) {
    DP_TRY(const auto checkpoint, open_named_checkpoint(flags.model.model, ""));
    DP_TRY(const formats::ModelConfig config, formats::read_config(*checkpoint));
    DP_TRY([[maybe_unused]] const uint32_t dimensions,
           engine::checked_dimensions(config, flags.options.dimensions));
  }
  DP_TRY(Model model, load_named_model(flags.model));
  std::vector<Embedding> embeddings;
  for (const Input& input : inputs) {
    DP_TRY(Embedding made,
           input.tokens ? model.embed(*input.tokens, flags.options) : model.embed(input.text, flags.options));
    embeddings.push_back(std::move(made));
  }
  const std::string text = output_of(flags, embeddings);
  if (!flags.out.empty()) {
    return write_file_atomically(flags.out, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

Result<void> check(const EmbedFlags& flags) {
  if (flags.format != "f32" && flags.format != "base64" && flags.format != "npy") {
    return fail(ErrorKind::kInvalidInput, "Flag --format was given \"%s\"; allowed are f32, base64 and npy.",
                printable(flags.format).c_str());
  }
  if (flags.format == "npy" && flags.json) {
    return fail(ErrorKind::kInvalidInput, "Flag --json goes with --format f32 and base64, not with npy.");
  }
  return {};
}

}  // namespace

int embed_verb(std::span<const std::string> arguments) {
  EmbedFlags flags;
  Args args("doppler embed [flags] MODEL [TEXT...]",
            "Vectors of texts, pooled and normalised as the model's files say: a line each.");
  args.words("MODEL [TEXT...]", &flags.words);
  args.custom("tokens", 0, "IDS", "token ids of a text, as they are: 1,2,3 (may be repeated)",
              [&flags](std::string_view value) -> Result<void> {
                DP_TRY(std::vector<int32_t> ids, parse_tokens(value));
                flags.tokens.push_back(std::move(ids));
                return {};
              });
  args.text("input", 0, "FILE.jsonl",
            "a line a text: a string, a list of token ids, or an object with input, text or tokens",
            &flags.input);
  args.flag("json", 0, "an object a line: embedding, dimensions, tokens", &flags.json);
  args.text("format", 0, "f32|base64|npy", "numbers, the bytes of f32, or one NumPy file (default f32)",
            &flags.format);
  args.text("out", 'o', "FILE", "written there instead of standard output", &flags.out);
  args.count("dimensions", 0, "N", "the first so many, of models that were trained for it",
             &flags.options.dimensions, {.least = 1});
  args.flag("truncate", 0, "cut texts that are longer than the context", &flags.options.truncate);
  args.custom("pooling", 0, "mean|cls|last", "for models whose files name none",
              [&flags](std::string_view value) -> Result<void> {
                DP_CHECK(engine::pooling_of(value));
                flags.model.load.pooling = std::string(value);
                return {};
              });
  add_model_flags(args, flags.model, /*allow_synthetic=*/false);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (auto checked = check(flags); !checked) return exit_usage(checked.error());
  if (flags.model.model.empty() && !flags.words.empty()) {
    flags.model.model = flags.words.front();
    flags.words.erase(flags.words.begin());
  }
  const auto inputs = read_inputs(flags);
  if (!inputs) return exit_failed(inputs.error());
  if (inputs->empty()) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "A text, --tokens or --input is needed."));
  }
  const auto done = embed(flags, *inputs);
  return done ? 0 : exit_failed(done.error());
}

}  // namespace doppler::cli
