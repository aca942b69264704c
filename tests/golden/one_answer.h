// The answer of a model for one sequence, as the engine's scheduler makes it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "engine/stream_answer.h"
#include "golden_helpers.h"
#include "model/device_model.h"

namespace doppler {

// `held`: the tokens of the text that the runner holds, before the answer and after it.
inline Generation one_answer(model::DeviceModel& runner, std::vector<uint32_t> prompt,
                             GenerateOptions options, std::vector<uint32_t>& held,
                             model::Drafting drafting = model::Drafting::kOff,
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
inline Generation one_answer(model::DeviceModel& runner, std::vector<uint32_t> prompt,
                             GenerateOptions options) {
  std::vector<uint32_t> nothing;
  return one_answer(runner, std::move(prompt), std::move(options), nothing);
}

// The same with the drafter lookup, eight rows a step, and a prediction with some errors.
inline Generation answer_with_drafts(model::DeviceModel& runner, std::vector<uint32_t> prompt,
                                     GenerateOptions options, const std::vector<int32_t>& answer) {
  std::vector<uint32_t> nothing, prediction(answer.begin(), answer.end());
  for (size_t i = 11; i < prediction.size(); i += 12) prediction[i] = (prediction[i] + 1) % 50;
  options.draft_rows = 8;
  return one_answer(runner, std::move(prompt), std::move(options), nothing, model::Drafting::kLookup,
                    [&](engine::Request& request) { request.settings.prediction = prediction; });
}

}  // namespace doppler
