// A small model of the same vocabulary that guesses what a large one will write: its own likeliest tokens. It holds the
// text as far as it has evaluated it, and goes on after the beginning that it shares with the next text.
#pragma once

#include <vector>

#include "engine/loaded_model.h"
#include "engine/scheduler/host_drafter.h"
#include "model/sequence_runner.h"

namespace doppler::engine {

// Error: the tokenizers differ, with the first token that does; or the numbers of tokens, if one has no tokenizer.
Result<void> check_same_vocabulary(const LoadedModel& model, const LoadedModel& draft);

// Makes `draft` the draft model of `model`. Errors: check_same_vocabulary()'s; one of the two is for several sequences.
Result<void> add_draft_model(LoadedModel& model, std::unique_ptr<LoadedModel> draft);

class DraftModel final : public HostDrafter {
 public:
  // `runner`: of one sequence, which holds its text and nobody else uses. It must outlive this object.
  explicit DraftModel(model::SequenceRunner& runner) : runner_(runner) {}
  Task<Result<std::vector<uint32_t>>> propose(std::span<const uint32_t> text, uint32_t most) override;

 private:
  Task<Result<void>> collect(size_t left, std::vector<uint32_t>& drafts);

  model::SequenceRunner& runner_;
  std::vector<uint32_t> held_;          // tokens that were evaluated
  std::vector<model::Ticket> tickets_;  // under way, the oldest first
};

}  // namespace doppler::engine
