// A small model of the same vocabulary that guesses the next tokens of a large one: it gives its own likeliest tokens.
// It holds the text that it has evaluated, and goes on after the beginning that the next text shares with it.
#pragma once

#include <vector>

#include "engine/loaded_model.h"
#include "engine/scheduler/host_drafter.h"
#include "model/sequence_runner.h"

namespace doppler::engine {

// Errors: the tokenizers differ, and the error names the first token that does; without a tokenizer, the numbers of
// tokens differ.
Result<void> check_same_vocabulary(const LoadedModel& model, const LoadedModel& draft);

// Makes `draft` the draft model of `model`. Errors: those of check_same_vocabulary(); one of the two is for several
// sequences.
Result<void> add_draft_model(LoadedModel& model, std::unique_ptr<LoadedModel> draft);

class DraftModel final : public HostDrafter {
 public:
  // `runner` is for one sequence and holds its text. It must outlive this object, and only this object may use it.
  explicit DraftModel(model::SequenceRunner& runner) : runner_(runner) {}
  Task<Result<std::vector<uint32_t>>> propose(std::span<const uint32_t> text, uint32_t most) override;

 private:
  Task<Result<void>> collect(size_t left, std::vector<uint32_t>& drafts);

  model::SequenceRunner& runner_;
  std::vector<uint32_t> held_;          // tokens that were evaluated
  std::vector<model::Ticket> tickets_;  // under way, the oldest first
};

}  // namespace doppler::engine
