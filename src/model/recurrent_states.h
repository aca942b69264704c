// The states of the layers that remember by one (kernels/recurrent), and where they stand. A state cannot be cut: a text is
// continued from where the states stand, from a checkpoint, or from its beginning, where kernels take a state for zero.
// Checkpoints are copies on the device, made behind prompts.
// Of plans for many sequences it only has the buffers: their slots always begin at position 0.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "formats/architectures/config.h"
#include "gpu/device.h"
#include "gpu/plan_builder.h"
#include "lowering/step_io.h"

namespace doppler::model {

// Numbers of one layer's state of one sequence.
struct StateShape {
  uint64_t conv = 0, scan = 0;
  uint64_t bytes() const { return (conv + scan) * sizeof(float); }
};
StateShape state_shape(const formats::ModelConfig& config, uint32_t layer);
// Of all layers of one sequence.
uint64_t state_bytes(const formats::ModelConfig& config);
// States of one sequence that are there at a time: one, or where the model drafts one behind each row of a drafting step.
uint32_t kept_rows(const formats::ModelConfig& config);

inline constexpr uint32_t kCheckpoints = 2;  // behind the last two chunks of prompts

class RecurrentStates {
 public:
  // slots: sequences; of a model that drafts one. has_checkpoints: the texts of one sequence go back.
  Task<Result<void>> make(gpu::Device& device, gpu::PlanBuilder& builder, const formats::ModelConfig& config,
                          uint32_t slots, bool has_checkpoints);
  bool empty() const { return live_.empty(); }
  const std::vector<lowering::StateView>& views() const { return views_; }  // by layer
  uint64_t bytes() const { return bytes_; }                                 // checkpoints too

  // The largest position, at most `count`, from which the text can be continued. Between generations.
  uint32_t continues_from(uint32_t count) const;
  // Brings the states to `pos`, one of continues_from()'s, and forgets checkpoints behind it.
  Result<void> begin(gpu::Device& device, uint32_t pos);
  // A chunk of a prompt was queued: a checkpoint stands behind it.
  Result<void> note_rows(gpu::Device& device, uint32_t rows);
  // Tokens came back. Each but a prompt's first stands for a row that was fed.
  void note_tokens(std::span<const uint32_t> tokens);
  // Of a drafting step that moved on: the row whose states hold (StepState::kept_row). Before note_tokens().
  void note_kept_row(uint32_t row) { kept_row_ = row; }
  // Between generations.
  uint32_t kept_row() const { return kept_row_; }

  // The states at `pos`, one of continues_from()'s, and back.
  Task<Result<std::vector<uint8_t>>> save(gpu::Device& device, uint32_t pos) const;
  Task<Result<void>> restore(gpu::Device& device, uint32_t pos, std::span<const uint8_t> bytes);
  // Of what save() gives.
  uint64_t saved_bytes() const;

 private:
  using Copy = std::vector<std::unique_ptr<gpu::Buffer>>;  // as live_
  struct Checkpoint {
    uint32_t pos = 0;  // 0: nothing is there
    Copy states;
  };
  uint32_t position() const { return prompt_end_ + (tokens_ == 0 ? 0 : tokens_ - 1); }
  Task<Result<Copy>> make_copy(gpu::Device& device, const char* name, uint32_t rows = 1);
  struct Place {
    const Copy* states = nullptr;  // null: none
    uint32_t row = 0;
  };
  Result<void> copy(gpu::Device& device, Place from, const Copy& to) const;
  Place states_at(uint32_t pos) const;

  std::vector<uint64_t> sizes_;  // bytes of each buffer, of one row's states
  Copy live_;
  std::array<Checkpoint, kCheckpoints> checkpoints_;
  std::vector<lowering::StateView> views_;
  uint64_t bytes_ = 0;
  bool has_checkpoints_ = false;
  uint32_t next_checkpoint_ = 0;
  uint32_t prompt_end_ = 0, tokens_ = 0;  // of the generation under way
  uint32_t kept_row_ = 0;
};

}  // namespace doppler::model
