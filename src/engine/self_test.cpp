#include "engine/self_test.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "engine/score.h"

namespace doppler::engine {
namespace {

constexpr uint32_t kTokens = 24;
constexpr uint32_t kPositions[] = {0, 11, 23};
constexpr uint32_t kTop = 8;
// A single logit may be off by ten times what the exact lane is tested to in relative L2 (docs/design/testing.md:
// 1e-4), of the largest logit: sums are made in another order on every device.
constexpr float kRelativeTolerance = 1e-3f;
// Steps through the vocabulary without a pattern; prime, so that no vocabulary's size divides it.
constexpr uint64_t kStride = 7919;

std::vector<uint32_t> test_tokens(uint32_t vocab_size) {
  std::vector<uint32_t> tokens(kTokens);
  for (uint32_t i = 0; i < kTokens; ++i) tokens[i] = static_cast<uint32_t>((i + 1) * kStride % vocab_size);
  return tokens;
}

// All positions' logits, [tokens, vocab_size].
Task<Result<std::vector<float>>> all_logits(model::DeviceModel& runner, std::span<const uint32_t> tokens) {
  std::vector<float> logits;
  OnRows on_rows = [&](uint32_t, uint32_t, const model::DeviceModel::Rows& rows) {
    logits.insert(logits.end(), rows.logits.begin(), rows.logits.end());
  };
  DP_CO_CHECK(co_await score_tokens(runner, tokens, std::move(on_rows)));
  co_return logits;
}

}  // namespace

Task<Result<formats::RdrrSelfTest>> make_self_test(model::DeviceModel& runner) {
  const uint32_t vocab_size = runner.config().vocab_size;
  formats::RdrrSelfTest test;
  test.tokens = test_tokens(vocab_size);
  test.lane = kSelfTestLane;
  DP_CO_TRY(const std::vector<float> logits, co_await all_logits(runner, test.tokens));
  float largest = 0;
  for (const uint32_t position : kPositions) {
    const std::span<const float> row = std::span(logits).subspan(size_t{position} * vocab_size, vocab_size);
    std::vector<uint32_t> ids(vocab_size);
    std::iota(ids.begin(), ids.end(), 0u);
    const uint32_t top = std::min(kTop, vocab_size);
    std::partial_sort(ids.begin(), ids.begin() + top, ids.end(),
                      [&](uint32_t a, uint32_t b) { return row[a] > row[b]; });
    ids.resize(top);
    formats::RdrrSelfTest::Position at{.position = position, .ids = ids, .logits = {}, .unknown = {}};
    for (const uint32_t id : ids) at.logits.push_back(row[id]);
    for (const float logit : row) largest = std::max(largest, std::abs(logit));
    test.positions.push_back(std::move(at));
  }
  if (!std::isfinite(largest)) {
    co_return fail(ErrorKind::kInvalidInput,
                   "The model gives logits that are not finite: its weights are wrong.");
  }
  test.tolerance = kRelativeTolerance * largest;
  co_return test;
}

Task<Result<SelfTestResult>> run_self_test(model::DeviceModel& runner, const formats::RdrrSelfTest& test) {
  const uint32_t vocab_size = runner.config().vocab_size;
  DP_CO_TRY(const std::vector<float> logits, co_await all_logits(runner, test.tokens));
  SelfTestResult result{.allowed = test.tolerance};
  for (const formats::RdrrSelfTest::Position& at : test.positions) {
    for (size_t i = 0; i < at.ids.size(); ++i) {
      if (at.ids[i] >= vocab_size) {
        co_return fail(ErrorKind::kInvalidInput, "The self test names token %u; the vocabulary has %u.",
                       at.ids[i], vocab_size);
      }
      const float difference = std::abs(logits[size_t{at.position} * vocab_size + at.ids[i]] - at.logits[i]);
      ++result.compared;
      if (difference <= result.worst) continue;
      result.position = at.position;
      result.id = at.ids[i];
      result.worst = std::isnan(difference) ? std::numeric_limits<float>::infinity() : difference;
    }
  }
  co_return result;
}

}  // namespace doppler::engine
