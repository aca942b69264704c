// Prompts answered together by the scheduler of a model for many sequences.
#pragma once

#include "engine/scheduler/scheduler.h"
#include "golden_helpers.h"

namespace doppler {

// The greedy streams of all prompts, submitted before the first turn, when they have ended.
inline std::vector<std::shared_ptr<engine::Stream>> answer_together(
    engine::Scheduler& scheduler, std::span<const std::vector<uint32_t>> prompts, uint32_t max_tokens) {
  std::vector<std::shared_ptr<engine::Stream>> streams;
  for (const std::vector<uint32_t>& prompt : prompts) {
    engine::Request request;
    request.tokens = prompt;
    request.settings.max_tokens = max_tokens;
    auto stream = scheduler.submit(std::move(request));
    EXPECT_TRUE(stream) << stream.error().message();
    if (!stream) return {};
    streams.push_back(*stream);
  }
  while (true) {
    const auto goes_on = gpu::run_to_completion(device(), scheduler.turn());
    EXPECT_TRUE(goes_on) << goes_on.error().message();
    if (!goes_on) return {};
    if (!*goes_on) return streams;
  }
}

}  // namespace doppler
