// The states of the layers that remember by one (kernels/recurrent), and their positions. A state cannot be cut: a text
// is continued from the states' position, from a checkpoint, or from its beginning, where kernels take a state for
// zero. Checkpoints are copies on the device. For one sequence they are made here, after prompts. For many, the
// scheduler knows each slot's position and the owner of each checkpoint (SequenceRunner::save_states).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "formats/architectures/config.h"
#include "gpu/device.h"
#include "gpu/plan_builder.h"
#include "lowering/step_io.h"

namespace doppler::model {

// Numbers of one layer's state of one sequence; none of a layer that is elsewhere (ModelConfig::part).
struct StateShape {
  uint64_t conv = 0, scan = 0;
  uint64_t bytes() const { return (conv + scan) * sizeof(float); }
};
StateShape state_shape(const formats::ModelConfig& config, uint32_t layer);
// The bytes of all layers' states of one sequence.
uint64_t state_bytes(const formats::ModelConfig& config);
// States of one sequence that are there at a time: one, or, if the model drafts, one after each row of a drafting step.
uint32_t kept_rows(const formats::ModelConfig& config);

inline constexpr uint32_t kCheckpoints = 2;  // of one sequence: after the last two chunks of prompts

class RecurrentStates {
 public:
  // slots: sequences, one if the model drafts. checkpoints: for all sequences together; a single sequence has
  // kCheckpoints, or 0 if its texts do not go back.
  Task<Result<void>> make(gpu::Device& device, gpu::PlanBuilder& builder, const formats::ModelConfig& config,
                          uint32_t slots, uint32_t checkpoints);
  bool empty() const { return live_.empty(); }
  const std::vector<lowering::StateView>& views() const { return views_; }  // by layer
  uint64_t bytes() const { return bytes_; }                                 // checkpoints too

  // For many sequences: the states of a slot into a checkpoint, and back.
  Result<void> save_slot(gpu::Device& device, uint32_t slot, uint32_t checkpoint);
  Result<void> load_slot(gpu::Device& device, uint32_t checkpoint, uint32_t slot);

  // For one sequence, from here on. The largest position, at most `count`, from which the text can be continued.
  // Between generations.
  uint32_t continues_from(uint32_t count) const;
  // Brings the states to `pos`, one of continues_from()'s, and forgets later checkpoints.
  Result<void> begin(gpu::Device& device, uint32_t pos);
  // A chunk of a prompt was queued: a checkpoint follows it.
  Result<void> note_rows(gpu::Device& device, uint32_t rows);
  // Tokens came back. Each but a prompt's first stands for a row that was fed.
  void note_tokens(std::span<const uint32_t> tokens);
  // For a drafting step that moved on: the row whose states hold (StepState::kept_row). Before note_tokens().
  void note_kept_row(uint32_t row) { kept_row_ = row; }
  // Between generations.
  uint32_t kept_row() const { return kept_row_; }

  // The states at `pos`, one of continues_from()'s, and back.
  Task<Result<std::vector<uint8_t>>> save(gpu::Device& device, uint32_t pos) const;
  Task<Result<void>> restore(gpu::Device& device, uint32_t pos, std::span<const uint8_t> bytes);
  // The size of save()'s result.
  uint64_t saved_bytes() const;

 private:
  using Rows = std::vector<std::unique_ptr<gpu::Buffer>>;  // a buffer a state, each with as many rows
  struct Place {
    const Rows* rows = nullptr;  // null: none
    uint32_t row = 0;
  };
  uint32_t position() const { return prompt_end_ + (tokens_ == 0 ? 0 : tokens_ - 1); }
  Task<Result<Rows>> make_rows(gpu::Device& device, const char* name, uint32_t count);
  Result<void> copy(gpu::Device& device, Place from, Place to) const;
  Place states_at(uint32_t pos) const;

  std::vector<uint64_t> sizes_;        // bytes of a row of each buffer
  Rows live_;                          // a row a slot, or a row of a drafting step
  Rows kept_;                          // a row a checkpoint
  std::vector<uint32_t> checkpoints_;  // position of each, of one sequence; 0: no states are there
  std::vector<lowering::StateView> views_;
  uint64_t bytes_ = 0;
  uint32_t next_checkpoint_ = 0;
  uint32_t prompt_end_ = 0, tokens_ = 0;  // of the generation under way
  uint32_t kept_row_ = 0;
};

}  // namespace doppler::model
