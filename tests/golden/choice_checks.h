// Answers with a grammar, log-probabilities, penalties and a further sampler, against the logits that chose their
// tokens. Tests take it for models that are loaded in some way of their own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "doppler/doppler.h"
#include "engine/scheduler/scheduler.h"
#include "residues_guide.h"

namespace doppler {

using Tokens = std::vector<uint32_t>;
using Adjust = std::function<void(engine::Request&)>;

inline constexpr uint32_t kChosen = 16;      // tokens of an answer
inline constexpr double kLogitBound = 2e-3;  // rows of a prompt and steps add in another order
inline constexpr int32_t kLiked = 5;         // the token that has a bias
inline constexpr float kPresence = 0.5f, kFrequency = 0.9f, kBias = 6;

// A model's ways: an answer to what is asked for, and the logits of the row that chose each token of an answer.
struct Chooser {
  uint32_t vocab_size = 0;
  Tokens prompt = {};
  double bound = kLogitBound;  // what logits may differ by
  std::function<Generation(GenerateOptions, const Adjust&)> answer = {};
  std::function<std::vector<float>(const Tokens&)> logits = {};

  std::span<const float> row(const std::vector<float>& all, size_t i) const {
    return std::span(all).subspan(i * vocab_size, vocab_size);
  }
};

inline GenerateOptions greedy_choice() {
  GenerateOptions options{.max_tokens = kChosen, .ignore_eos = true};
  options.sampling.temperature = 0;
  return options;
}
// The best token by penalised logits.
inline GenerateOptions penalised_choice() {
  GenerateOptions options = greedy_choice();
  SamplingOptions& sampling = options.sampling;
  sampling.temperature = 1;
  sampling.top_k = 1;
  sampling.presence_penalty = kPresence;
  sampling.frequency_penalty = kFrequency;
  sampling.logit_bias = {{kLiked, kBias}};
  return options;
}
// The second of two: XTC leaves out the best.
inline GenerateOptions second_choice() {
  GenerateOptions options = greedy_choice();
  SamplingOptions& sampling = options.sampling;
  sampling.temperature = 1;
  sampling.top_k = 2;
  sampling.top_p = 1;
  sampling.xtc_probability = 1;
  sampling.xtc_threshold = 1e-6f;
  return options;
}
inline GenerateOptions told_choice() {
  GenerateOptions options = greedy_choice();
  options.logprobs = true;
  options.top_logprobs = 3;
  return options;
}
inline GenerateOptions all_choices() {
  GenerateOptions options = penalised_choice();
  options.logprobs = true;
  options.top_logprobs = 3;
  return options;
}
inline void guide_by_residues(engine::Request& request, uint32_t vocab_size) {
  request.settings.masked = true;
  request.guide = std::make_shared<Residues>(vocab_size);
}

inline Tokens tokens_of(const Generation& answer) { return {answer.tokens.begin(), answer.tokens.end()}; }

// Each token is the best by `score`, which differs from the best by logits at least once.
inline void expect_best(const Chooser& of, const Tokens& answer,
                        const std::function<double(size_t, uint32_t, float)>& score) {
  ASSERT_EQ(answer.size(), kChosen);
  const std::vector<float> all = of.logits(answer);
  ASSERT_EQ(all.size(), answer.size() * of.vocab_size);
  uint32_t bent = 0;
  for (size_t i = 0; i < answer.size(); ++i) {
    const std::span<const float> row = of.row(all, i);
    double best = -INFINITY;
    for (uint32_t token = 0; token < of.vocab_size; ++token)
      best = std::max(best, score(i, token, row[token]));
    EXPECT_GE(score(i, answer[i], row[answer[i]]), best - of.bound) << "token " << i;
    bent += row[answer[i]] < *std::ranges::max_element(row) - of.bound ? 1 : 0;
  }
  EXPECT_GT(bent, 0u) << "the best tokens show nothing";
}

// The token before leaves no token of its residue.
inline bool is_allowed(const Tokens& answer, size_t i, uint32_t token) {
  return token % 5 != (i == 0 ? 4 : answer[i - 1] % 5);
}
inline double penalised(const Chooser& of, const Tokens& answer, size_t i, uint32_t token, float logit) {
  const auto count = static_cast<double>(std::ranges::count(of.prompt, token) +
                                         std::ranges::count(std::span(answer).first(i), token));
  const double bias = token == static_cast<uint32_t>(kLiked) ? double{kBias} : 0;
  return double{logit} + bias - (count > 0 ? double{kPresence} : 0) - double{kFrequency} * count;
}

inline void expect_grammar(const Chooser& of, const Tokens& answer) {
  expect_best(of, answer, [&](size_t i, uint32_t token, float logit) {
    return is_allowed(answer, i, token) ? double{logit} : -INFINITY;
  });
}
inline void expect_grammar(const Chooser& of) {
  expect_grammar(of, tokens_of(of.answer(greedy_choice(), [&](engine::Request& request) {
                   guide_by_residues(request, of.vocab_size);
                 })));
}
inline void expect_penalties(const Chooser& of, const Tokens& answer) {
  expect_best(of, answer,
              [&](size_t i, uint32_t token, float logit) { return penalised(of, answer, i, token, logit); });
}
inline void expect_all_choices(const Chooser& of, const Tokens& answer) {
  expect_best(of, answer, [&](size_t i, uint32_t token, float logit) {
    return is_allowed(answer, i, token) ? penalised(of, answer, i, token, logit) : -INFINITY;
  });
}

inline void expect_seconds(const Chooser& of, const Tokens& answer) {
  ASSERT_EQ(answer.size(), kChosen);
  const std::vector<float> all = of.logits(answer);
  for (size_t i = 0; i < answer.size(); ++i) {
    const std::span<const float> row = of.row(all, i);
    std::vector<float> sorted(row.begin(), row.end());
    std::ranges::partial_sort(sorted, sorted.begin() + 2, std::greater());
    EXPECT_NEAR(row[answer[i]], sorted[1], of.bound) << "token " << i;
  }
}
inline void expect_samplers(const Chooser& of) {
  expect_penalties(of, tokens_of(of.answer(penalised_choice(), {})));
  expect_seconds(of, tokens_of(of.answer(second_choice(), {})));
}

inline void expect_logprobs(const Chooser& of) {
  const Generation answer = of.answer(told_choice(), {});
  const Tokens tokens = tokens_of(answer);
  ASSERT_EQ(answer.logprobs.size(), tokens.size());
  const std::vector<float> all = of.logits(tokens);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::span<const float> row = of.row(all, i);
    double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit));
    ASSERT_EQ(answer.logprobs[i].top.size(), 3u);
    EXPECT_EQ(answer.logprobs[i].top[0].first, answer.tokens[i]);
    for (const auto& [token, logprob] : answer.logprobs[i].top) {
      EXPECT_NEAR(logprob, static_cast<double>(row[static_cast<size_t>(token)]) - std::log(sum), of.bound)
          << i;
    }
  }
}

}  // namespace doppler
