// The answer of a model for one sequence, as the engine's scheduler makes it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "engine/stream_answer.h"
#include "golden_helpers.h"
#include "model/plan_runner.h"

namespace doppler {

// `held`: the tokens of the text that the runner holds, before the answer and after it.
inline Generation one_answer(model::PlanRunner& runner, std::vector<uint32_t> prompt, GenerateOptions options,
                             std::vector<uint32_t>& held, model::Drafting drafting = model::Drafting::kOff,
                             const std::function<void(engine::Request&)>& adjust = {},
                             engine::HostDrafter* drafter = nullptr) {
  const uint32_t vocab_size = runner.config().vocab_size;
  auto scheduler = engine::Scheduler::create(
      *runner.runner(), {.drafter = drafter, .vocab_size = vocab_size, .tickets_ahead = 3});
  EXPECT_TRUE(scheduler) << scheduler.error().message();
  (*scheduler)->hold(std::move(held));
  engine::StreamAnswer answer(nullptr,
                              {.vocab_size = vocab_size,
                               .ctx_len = runner.ctx_len(),
                               .stop_tokens = {},
                               .drafting = drafting,
                               .drafters = {.next_layer = runner.has_drafts(), .model = drafter != nullptr}},
                              std::move(prompt), std::move(options));
  const auto turn = [&] {
    auto more = gpu::run_to_completion(device(), (*scheduler)->turn());
    EXPECT_TRUE(more) << more.error().message();
    return more && *more;
  };
  while (!answer.ended()) {
    auto request = answer.next_request({});
    EXPECT_TRUE(request) << request.error().message();
    if (request && adjust) adjust(*request);
    auto stream = request ? (*scheduler)->submit(std::move(*request)) : forward(request.error());
    EXPECT_TRUE(stream) << stream.error().message();
    if (!stream) break;
    while (!(*stream)->ended() && turn()) {
    }
    const auto taken = answer.take({.tokens = (*stream)->take(),
                                    .logprobs = (*stream)->take_logprobs(),
                                    .ended = (*stream)->ended(),
                                    .reason = (*stream)->reason(),
                                    .error = (*stream)->error(),
                                    .timings = (*stream)->timings()});
    EXPECT_TRUE(taken) << taken.error().message();
    if (!taken) break;
  }
  while (turn()) {
  }
  held = (*scheduler)->held();
  return answer.result();
}

// The same, with nothing held.
inline Generation one_answer(model::PlanRunner& runner, std::vector<uint32_t> prompt,
                             GenerateOptions options) {
  std::vector<uint32_t> nothing;
  return one_answer(runner, std::move(prompt), std::move(options), nothing);
}

}  // namespace doppler
