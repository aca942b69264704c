// doppler embed: vectors of texts, by a model that gives embeddings. Each line goes out when it is made, so that an
// error or Ctrl-C keeps the finished ones; one NumPy file is written at the end.
#include "engine/embed.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/base64.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/common.h"
#include "cli/measure.h"
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

// A text, or its tokens, and what an error calls it.
struct Input {
  std::string text;
  std::optional<std::vector<int32_t>> tokens;
  std::string place;
};

constexpr std::string_view kFields[] = {"input", "text", "tokens"};

Unexpected wrong_line() {
  return fail(
      ErrorKind::kInvalidInput,
      "A line must be a text, a list of token ids, or an object with \"input\", \"text\" or \"tokens\".");
}

// The line itself, or the one member of its object.
Result<const Json*> value_of_line(const Json& line) {
  if (!line.is_object()) return &line;
  for (const auto& member : line.items()) {
    if (std::ranges::count(kFields, member.key) > 0) continue;
    return fail(ErrorKind::kInvalidInput, "Field \"%s\" is not known; allowed are input, text and tokens.",
                printable(member.key).c_str());
  }
  if (line.empty()) return wrong_line();
  if (line.size() > 1) {
    return fail(ErrorKind::kInvalidInput, "Fields \"%s\" and \"%s\" are both given; one is needed.",
                line.items()[0].key.c_str(), line.items()[1].key.c_str());
  }
  return &line.items().front().value;
}

Result<Input> input_of_line(const Json& line, uint32_t vocab_size) {
  DP_TRY(const Json* value, value_of_line(line));
  if (value->is_string()) return Input{.text = value->get<std::string>(), .tokens = {}, .place = {}};
  if (!value->is_array()) return wrong_line();
  std::vector<int32_t> ids;
  for (const Json& id : *value) {
    if (!id.is_number()) return wrong_line();
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= vocab_size) {
      return fail(ErrorKind::kInvalidInput, "Token %s is outside the vocabulary; allowed is 0 to %u.",
                  to_text(id).c_str(), vocab_size - 1);
    }
    ids.push_back(static_cast<int32_t>(id.get<uint64_t>()));
  }
  return Input{.text = {}, .tokens = std::move(ids), .place = {}};
}

Result<std::vector<Input>> read_inputs(const EmbedFlags& flags, uint32_t vocab_size) {
  std::vector<Input> out;
  for (const std::vector<int32_t>& ids : flags.tokens)
    out.push_back({.text = {}, .tokens = ids, .place = {}});
  for (const std::string& text : flags.words) out.push_back({.text = text, .tokens = {}, .place = {}});
  for (size_t i = 0; i < out.size(); ++i) out[i].place = format_text("text %zu", i + 1);
  if (flags.input.empty()) return out;
  DP_TRY(const std::string file, read_text_file(flags.input));
  size_t number = 0;
  for (const std::string& line : split(file, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const std::string place = format_text("line %zu of %s", number, flags.input.c_str());
    DP_TRY(const Json parsed, parse_json(line, place));
    auto input = input_of_line(parsed, vocab_size);
    DP_CHECK_WHILE(input, "reading %s", place.c_str());
    input->place = place;
    out.push_back(std::move(*input));
  }
  if (out.empty())
    return fail(ErrorKind::kInvalidInput, "%s has no text; a line with one is needed.", flags.input.c_str());
  return out;
}

// Standard output, or the file of -o. The file is opened before the model is loaded and keeps its old content until the
// first vectors are there.
class Output {
 public:
  static Result<Output> open(const std::string& path) {
    Output out(path);
    if (path.empty()) return out;
    out.file_ = OpenFile::open(
        path, {.reads = false, .writes = true, .makes = true, .readers = FileReaders::kAsUserSet});
    return out.file_ ? Result<Output>(std::move(out)) : out.failed();
  }
  Result<void> write(const std::string& text) {
    if (!file_) {
      const bool is_written =
          std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
      return is_written ? Result<void>() : failed();
    }
    // EINVAL: what has no length, such as a pipe.
    if (is_first_ && !file_.resize(0) && errno != EINVAL) return failed();
    is_first_ = false;
    return file_.write(text) ? Result<void>() : failed();
  }

 private:
  explicit Output(std::string path) : path_(std::move(path)) {}
  Unexpected failed() const {
    return fail(ErrorKind::kIo, "Cannot write %s: %s.", path_.empty() ? "standard output" : path_.c_str(),
                std::strerror(errno));
  }

  std::string path_;
  OpenFile file_;
  bool is_first_ = true;
};

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

std::string line_of(const EmbedFlags& flags, const Embedding& embedding) {
  if (flags.json) return to_text(json_of(flags, embedding)) + "\n";
  if (flags.format == "base64") return base64(bytes_of(embedding.values)) + "\n";
  return text_of(embedding);
}

Result<void> embed_all(const EmbedFlags& flags, Model& model, const std::vector<Input>& inputs,
                       Output& output) {
  std::vector<Embedding> of_file;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Input& input = inputs[i];
    if (stderr_is_terminal()) std::fprintf(stderr, "\r\033[K%zu of %zu texts", i, inputs.size());
    auto made =
        input.tokens ? model.embed(*input.tokens, flags.options) : model.embed(input.text, flags.options);
    end_progress();
    DP_CHECK_WHILE(made, "embedding %s", input.place.c_str());
    if (flags.format == "npy") {
      of_file.push_back(std::move(*made));
    } else {
      DP_CHECK(output.write(line_of(flags, *made)));
    }
  }
  if (flags.format != "npy") return {};
  return output.write(npy_of(of_file));
}

// Reports missing inputs and outputs that cannot be written before anything is loaded.
Result<void> embed(const EmbedFlags& flags) {
  DP_TRY(const auto checkpoint, open_named_checkpoint(flags.model.model, ""));
  DP_TRY(const formats::ModelConfig config, formats::read_config(*checkpoint));
  if (flags.model.load.pooling.empty()) {
    DP_TRY([[maybe_unused]] const uint32_t dimensions,
           engine::checked_dimensions(config, flags.options.dimensions));
  }
  DP_TRY(const std::vector<Input> inputs, read_inputs(flags, config.vocab_size));
  DP_TRY(Output output, Output::open(flags.out));
  DP_TRY(Model model, load_named_model(flags.model));
  return embed_all(flags, model, inputs, output);
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
            "Prints vectors of texts, pooled and normalised as the model's files say: a line each.");
  args.words("MODEL [TEXT...]", &flags.words);
  args.custom("tokens", 0, "IDS", "token ids of a text in place of its words: 1,2,3 (may be repeated)",
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
  args.text("out", 'o', "FILE", "written there instead of standard output; line by line, except npy",
            &flags.out);
  args.count("dimensions", 0, "N", "the first so many, of models that were trained for it",
             &flags.options.dimensions, {.least = 1});
  args.flag("truncate", 0, "cut texts that are longer than the context", &flags.options.truncate);
  args.custom("pooling", 0, "mean|cls|last", "instead of what the model's files say",
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
  if (flags.words.empty() && flags.tokens.empty() && flags.input.empty()) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "A text, --tokens or --input is needed."));
  }
  const auto done = embed(flags);
  return done ? 0 : exit_failed(done.error());
}

}  // namespace doppler::cli
