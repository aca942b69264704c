// doppler perplexity: exp of the mean negative log-likelihood of a text, in windows of --ctx tokens that are each run
// separately from position 0 (the first token of a window is not predicted).
#include <cmath>
#include <cstdio>

#include "base/json.h"
#include "cli/common.h"
#include "cli/verbs.h"
#include "engine/score.h"

namespace doppler::cli {
namespace {

constexpr uint32_t kDefaultWindow = 512;

struct Perplexity {
  double total = 0;
  uint64_t predicted = 0;
  std::vector<double> windows;  // mean of each
  double mean() const { return predicted == 0 ? 0 : total / static_cast<double>(predicted); }
};

Result<Perplexity> measure(Model& model, std::span<const uint32_t> tokens, uint32_t window, bool show) {
  model::DeviceModel& runner = *Model::Impl::of(model).loaded->runner;
  const size_t vocab = runner.config().vocab_size;
  Perplexity out;
  for (size_t at = 0; at + 2 <= tokens.size(); at += window) {
    const auto part = tokens.subspan(at, std::min<size_t>(window, tokens.size() - at));
    if (part.size() < 2) break;
    double sum = 0;
    const auto on_rows = [&](uint32_t pos, uint32_t count, const model::DeviceModel::Rows& rows) {
      for (uint32_t i = 0; i < count && pos + i + 1 < part.size(); ++i) {
        sum += engine::negative_log_likelihood(std::span(rows.logits).subspan(i * vocab, vocab),
                                               part[pos + i + 1]);
      }
    };
    DP_CHECK(gpu::run_to_completion(runner.device(), engine::score_tokens(runner, part, on_rows)));
    out.total += sum;
    out.predicted += part.size() - 1;
    out.windows.push_back(sum / static_cast<double>(part.size() - 1));
    if (show)
      std::fprintf(stderr, "\r\033[K%zu of %zu tokens, perplexity %.3f", at + part.size(), tokens.size(),
                   std::exp(out.mean()));
  }
  if (show) std::fprintf(stderr, "\r\033[K");
  if (out.predicted == 0)
    return fail(ErrorKind::kInvalidInput, "The text has %zu tokens; at least 2 are needed.", tokens.size());
  return out;
}

}  // namespace

int perplexity_verb(std::span<const std::string> arguments) {
  ModelFlags flags;
  std::string file;
  uint64_t limit = 0;
  bool json = false, add_special = false;
  Args args("doppler perplexity --file TEXT [flags]",
            "Measures how well the model predicts a text: exp of the mean negative log-likelihood a token.");
  args.text("file", 'f', "TEXT", "the text; - for standard input", &file);
  args.big_count("tokens", 0, "N", "use only the first N tokens (default: all)", &limit);
  args.flag("add-special", 0, "put the begin-of-text token before the text", &add_special);
  args.flag("json", 0, "print one JSON object", &json);
  add_model_flags(args, flags, /*allow_synthetic=*/false);
  if (const auto code = parse_or_exit(args, arguments)) return *code;
  if (file.empty()) return exit_usage(Error(ErrorKind::kInvalidInput, "Flag --file is needed."));
  if (flags.load.ctx_len == 0) flags.load.ctx_len = kDefaultWindow;
  auto text = read_text_file(file);
  if (!text) return exit_failed(text.error());
  auto model = load_named_model(flags, {.all_logits = true});
  if (!model) return exit_failed(model.error());
  auto ids = model->tokenize(*text, add_special, /*parse_special=*/false);
  if (!ids) return exit_failed(ids.error());
  std::vector<uint32_t> tokens(ids->begin(), ids->end());
  if (limit != 0 && tokens.size() > limit) tokens.resize(limit);
  auto measured = measure(*model, tokens, model->info().ctx_len, stderr_is_terminal());
  if (!measured) return exit_failed(measured.error());
  if (json) {
    Json out = Json::object();
    out["perplexity"] = std::exp(measured->mean());
    out["mean_nll"] = measured->mean();
    out["predicted_tokens"] = measured->predicted;
    out["window"] = model->info().ctx_len;
    out["preset"] = bench::preset_json(flags.preset.used);
    out["window_mean_nll"] = measured->windows;
    std::printf("%s\n", to_text(out, 2).c_str());
  } else {
    std::printf("perplexity %.4f (mean NLL %.5f over %llu tokens, windows of %u)\n",
                std::exp(measured->mean()), measured->mean(),
                static_cast<unsigned long long>(measured->predicted), model->info().ctx_len);
  }
  return 0;
}

}  // namespace doppler::cli
