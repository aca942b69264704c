#include "engine/embed.h"

#include <algorithm>
#include <cmath>

#include "engine/score.h"
#include "formats/architectures/architecture.h"

namespace doppler::engine {
namespace {

using formats::ModelConfig;
using formats::Pooling;

constexpr double kLeastNorm = 1e-12;  // of sentence-transformers: a vector of zeros stays one

// Adds up the rows of a text, or keeps a single one.
class Pool {
 public:
  Pool(const ModelConfig& config, size_t tokens)
      : kind_(config.pooling.kind), tokens_(tokens), sums_(formats::output_dim(config)) {}

  void add(uint32_t pos, uint32_t count, std::span<const float> rows) {
    for (size_t row = 0; row < count; ++row) {
      if (kind_ == Pooling::kCls && pos + row != 0) continue;
      if (kind_ == Pooling::kLast && pos + row + 1 != tokens_) continue;
      for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += double{rows[row * sums_.size() + i]};
    }
  }
  std::vector<double> result() const {
    std::vector<double> out = sums_;
    for (double& value : out) value /= kind_ == Pooling::kMean ? static_cast<double>(tokens_) : 1;
    return out;
  }

 private:
  Pooling kind_;
  size_t tokens_;
  std::vector<double> sums_;
};

Score score_of(double x, size_t tokens) {
  return {.value = static_cast<float>(1 / (1 + std::exp(-x))), .tokens = static_cast<uint32_t>(tokens)};
}

// The question that Qwen3-Reranker was trained with (its model card).
constexpr std::string_view kAsk =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the "
    "Instruct "
    "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: "
    "Given a web search query, retrieve relevant passages that answer the query\n<Query>: ";
constexpr std::string_view kAnswer = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

Result<uint32_t> only_token(const tokenizer::Tokenizer& tokenizer, std::string_view word) {
  DP_TRY(const std::vector<int32_t> ids,
         tokenizer.encode(word, {.add_special = false, .parse_special = true}));
  if (ids.size() == 1) return static_cast<uint32_t>(ids[0]);
  return fail(
      ErrorKind::kUnsupported,
      "The model cannot score texts: \"%s\", of the question that Qwen3-Reranker was trained with, is "
      "no token of it.",
      std::string(word).c_str());
}

Result<std::vector<uint32_t>> question(const tokenizer::Tokenizer& tokenizer, const std::string& query,
                                       const std::string& text) {
  const std::string prompt = std::string(kAsk) + query + "\n<Document>: " + text + std::string(kAnswer);
  DP_TRY(const std::vector<int32_t> ids,
         tokenizer.encode(prompt, {.add_special = false, .parse_special = true}));
  return std::vector<uint32_t>(ids.begin(), ids.end());
}

// GGUF files of such models have only the head's two rows, "yes" first, as classes of the last token.
Task<Result<Score>> judged_by_classes(LoadedModel& loaded, std::string query, std::string text) {
  DP_CO_TRY(const std::vector<uint32_t> tokens, question(*loaded.text.tokenizer, query, text));
  DP_CO_TRY(const std::vector<float> scores, co_await embed_tokens(*loaded.runner, tokens, {}, 2));
  co_return score_of(double{scores[0]} - double{scores[1]}, tokens.size());
}

Task<Result<Score>> judged(LoadedModel& loaded, std::string query, std::string text) {
  const tokenizer::Tokenizer& tokenizer = *loaded.text.tokenizer;
  DP_CO_CHECK(only_token(tokenizer, "<|im_start|>"));
  DP_CO_TRY(const uint32_t yes, only_token(tokenizer, "yes"));
  DP_CO_TRY(const uint32_t no, only_token(tokenizer, "no"));
  DP_CO_TRY(const std::vector<uint32_t> tokens, question(tokenizer, query, text));
  double difference = 0;
  const size_t vocab = loaded.runner->config().vocab_size;
  const auto on_rows = [&](uint32_t, uint32_t count, const model::DeviceModel::Rows& rows) {
    const auto last = std::span(rows.logits).subspan((count - 1) * vocab, vocab);
    difference = double{last[yes]} - double{last[no]};
  };
  DP_CO_CHECK(co_await score_tokens(*loaded.runner, tokens, on_rows));
  co_return score_of(difference, tokens.size());
}

}  // namespace

Result<uint32_t> checked_dimensions(const ModelConfig& config, uint32_t dimensions) {
  if (!formats::is_embedding_model(config) || config.pooling.n_classes != 0) {
    // Copies of earlier pulls lack it.
    const bool may_lack = !config.gguf_names && !formats::is_embedding_model(config);
    return fail(ErrorKind::kUnsupported, "The model %s %s, no embeddings: its files name no pooling%s.",
                config.name.c_str(), formats::is_embedding_model(config) ? "gives scores" : "writes text",
                may_lack
                    ? " (no modules.json; where its source has one, \"doppler pull --replace\" fetches it)"
                    : "");
  }
  const uint32_t own = formats::output_dim(config);
  if (dimensions == 0 || dimensions == own) return own;
  if (!formats::architecture_of(config).truncatable) {
    return fail(ErrorKind::kInvalidInput,
                "Embeddings of %u dimensions were asked for; those of %s have %u and cannot be cut.",
                dimensions, config.architecture.c_str(), own);
  }
  if (dimensions < own) return dimensions;
  return fail(ErrorKind::kInvalidInput, "Embeddings of %u dimensions were asked for; allowed is 1 to %u.",
              dimensions, own);
}

Task<Result<std::vector<float>>> embed_tokens(model::DeviceModel& runner, std::span<const uint32_t> tokens,
                                              std::span<const uint32_t> types, uint32_t dimensions) {
  Pool pool(runner.config(), tokens.size());
  const auto on_rows = [&](uint32_t pos, uint32_t count, const model::DeviceModel::Rows& rows) {
    pool.add(pos, count, rows.logits);
  };
  DP_CO_CHECK(co_await score_tokens(runner, tokens, on_rows, types));
  std::vector<double> values = pool.result();
  values.resize(dimensions);
  double norm = 1;
  if (runner.config().pooling.normalise) {
    double squares = 0;
    for (const double value : values) squares += value * value;
    norm = std::max(std::sqrt(squares), kLeastNorm);
  }
  std::vector<float> out;
  for (const double value : values) out.push_back(static_cast<float>(value / norm));
  co_return out;
}

Task<Result<Embedding>> embed(model::DeviceModel& runner, std::vector<uint32_t> tokens,
                              EmbedOptions options) {
  DP_CO_TRY(const uint32_t dimensions, checked_dimensions(runner.config(), options.dimensions));
  if (options.truncate && tokens.size() > runner.ctx_len()) {
    const uint32_t last = tokens.back();
    tokens.resize(runner.ctx_len());
    tokens.back() = last;
  }
  Embedding out{.values = {}, .tokens = static_cast<uint32_t>(tokens.size())};
  auto running = embed_tokens(runner, tokens, {}, dimensions);
  DP_CO_TRY(out.values, co_await std::move(running));
  co_return out;
}

Task<Result<Score>> rerank_score(LoadedModel& loaded, std::string_view query, std::string_view text) {
  const ModelConfig& config = loaded.runner->config();
  if (!loaded.runner->options().all_logits) {
    co_return fail(ErrorKind::kUnsupported, "The model %s was loaded to write text, not to score it.",
                   config.name.c_str());
  }
  const tokenizer::Tokenizer* tokenizer = loaded.text.tokenizer.get();
  if (!tokenizer) {
    co_return fail(ErrorKind::kUnsupported, "The model's tokenizer cannot be used: %s",
                   loaded.text.tokenizer_problem.c_str());
  }
  if (!formats::is_embedding_model(config))
    co_return co_await judged(loaded, std::string(query), std::string(text));
  if (!config.bidirectional && config.pooling.n_classes == 2)
    co_return co_await judged_by_classes(loaded, std::string(query), std::string(text));
  if (config.pooling.n_classes != 1) {
    co_return fail(
        ErrorKind::kUnsupported,
        "The model %s cannot score texts: it has %u classes; supported is one, and two of a model that "
        "was trained to answer \"yes\" or \"no\".",
        config.name.c_str(), config.pooling.n_classes);
  }
  DP_CO_TRY(tokenizer::EncodedPair pair, tokenizer->encode_pair(query, text));
  for (uint32_t& type : pair.types) type = std::min(type, std::max(1u, config.n_token_types) - 1);
  const std::vector<uint32_t> tokens(pair.ids.begin(), pair.ids.end());
  DP_CO_TRY(const std::vector<float> score, co_await embed_tokens(*loaded.runner, tokens, pair.types, 1));
  co_return score_of(double{score[0]}, tokens.size());
}

}  // namespace doppler::engine
