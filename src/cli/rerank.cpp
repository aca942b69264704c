// doppler rerank: which texts answer a query best.
#include <algorithm>
#include <cstdio>

#include "base/json.h"
#include "cli/common.h"
#include "cli/verbs.h"

namespace doppler::cli {
namespace {

struct RerankFlags {
  ModelFlags model;
  std::vector<std::string> words;  // model, query, texts
  std::string input;
  bool json = false;
};

struct Scored {
  size_t index;
  float score;
};

Result<std::vector<std::string>> read_texts(const RerankFlags& flags) {
  std::vector<std::string> texts;
  if (flags.words.size() > 1) texts.assign(flags.words.begin() + 1, flags.words.end());
  if (flags.input.empty()) return texts;
  DP_TRY(const std::string file, read_text_file(flags.input));
  for (const std::string& line : split(file, '\n')) {
    if (!trim(line).empty()) texts.emplace_back(line);
  }
  if (texts.empty())
    return fail(ErrorKind::kInvalidInput, "%s has no text; a line with one is needed.", flags.input.c_str());
  return texts;
}

Result<void> rerank(const RerankFlags& flags, const std::vector<std::string>& texts) {
  DP_TRY(Model model, load_named_model(flags.model, {.all_logits = true}));
  std::vector<Scored> scored;
  for (const std::string& text : texts) {
    DP_TRY(const float score, model.rerank(flags.words.front(), text));
    scored.push_back({.index = scored.size(), .score = score});
  }
  std::ranges::stable_sort(scored, std::ranges::greater(), &Scored::score);
  for (const Scored& one : scored) {
    if (flags.json) {
      Json line = {{"index", one.index}, {"relevance_score", one.score}, {"document", texts[one.index]}};
      if (!flags.model.preset.used.name.empty()) line["preset"] = bench::preset_json(flags.model.preset.used);
      std::printf("%s\n", to_text(line).c_str());
    } else {
      std::printf("%.6f %zu %s\n", double{one.score}, one.index, texts[one.index].c_str());
    }
  }
  return {};
}

}  // namespace

int rerank_verb(std::span<const std::string> arguments) {
  RerankFlags flags;
  Args args("doppler rerank [flags] MODEL QUERY [TEXT...]",
            "Sorts texts by how well they answer a query, the best first: score from 0 to 1, number, text.");
  args.words("MODEL QUERY [TEXT...]", &flags.words);
  args.text("input", 0, "FILE", "a text a line; - for standard input", &flags.input);
  args.flag("json", 0, "an object a line: index, relevance_score, document", &flags.json);
  add_model_flags(args, flags.model, /*allow_synthetic=*/false);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (flags.model.model.empty() && !flags.words.empty()) {
    flags.model.model = flags.words.front();
    flags.words.erase(flags.words.begin());
  }
  const auto texts = read_texts(flags);
  if (!texts) return exit_failed(texts.error());
  if (flags.words.empty() || texts->empty()) {
    return exit_usage(Error(ErrorKind::kInvalidInput, "A model, a query and a text are needed."));
  }
  const auto done = rerank(flags, *texts);
  return done ? 0 : exit_failed(done.error());
}

}  // namespace doppler::cli
