// The steps of a model for one sequence: what the host writes before a step, which plan it submits, what it reads
// back. Keys and values lie in the order of their positions, without blocks. continues_from() says where its text can
// go on. DeviceModel loads it: buffers, cache and plans are that one's. Contract: sequence_runner.h. Read next:
// kernels/common/step_state.h and kernels/step/step.h (how the GPU moves the state on), paged_runner.h (experts that
// are not all on the device).
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "gpu/device.h"
#include "kernels/common/step_state.h"
#include "model/adapter_set.h"
#include "model/choice_plans.h"
#include "model/draft_plans.h"
#include "model/host_table.h"
#include "model/image_inputs.h"
#include "model/kv_cache.h"
#include "model/open_step.h"
#include "model/recurrent_states.h"
#include "model/sequence_runner.h"
#include "model/stream_port.h"

namespace doppler::model {

// Looks at each ticket whether its tokens are lost. Only the lane persistent has one.
class TicketWatch {
 public:
  virtual ~TicketWatch() = default;
  virtual Result<void> note(uint32_t slot) = 0;         // after the ticket's submit
  virtual Task<Result<void>> check(uint32_t slot) = 0;  // error: its tokens are lost
  virtual bool goes_on_without_lost() = 0;              // SequenceRunner::goes_on_without_lost()
};

// Everything that a OneSequence uses. The DeviceModel owns it all and outlives it.
struct OneSequenceParts {
  gpu::Buffer *state = nullptr, *tokens = nullptr, *params = nullptr, *bias = nullptr, *counts = nullptr,
              *recent = nullptr, *ring = nullptr;
  HostTable* table = nullptr;  // each step needs its tokens' rows; null: there is no such table
  KvCache* cache = nullptr;
  RecurrentStates* states = nullptr;
  const ChoicePlans* choices = nullptr;
  AdapterSet* adapters = nullptr;
  const DraftPlans* drafts = nullptr;
  TicketWatch* watch = nullptr;
  bool has_next_layer = false;  // plans of prompts have the next-token layer
  bool drafts_by_host = false;
  uint32_t ctx_len = 0, chunk = 0, vocab_size = 0, tickets = 0;
  // The plan of a decode step with up to so many keys, and the plan of up to so many rows of a prompt: "" (no row
  // chooses a token), ".greedy" or ".sample".
  std::function<const gpu::Plan&(bool greedy, uint32_t keys)> decode_plan;
  std::function<const gpu::Plan&(std::string_view kind, uint32_t rows)> prompt_plan;
  ImageInputs images = {};
  // The plan of a prompt's step with pictures, by the same kinds.
  std::function<const gpu::Plan&(std::string_view kind)> image_plan;
  std::function<Task<Result<void>>(SamplerParts)> add_choices;
  std::function<Task<Result<void>>(DraftNeed, uint32_t slots)> add_drafts;  // null: no plan may draft
  const StreamOut* stream = nullptr;  // if later layers lie on another device: steps bring this, not tokens
};

class OneSequence final : public HalvedRunner {
 public:
  OneSequence(gpu::Device& device, OneSequenceParts parts) : device_(device), parts_(std::move(parts)) {}
  Task<Result<void>> make_readback();

  uint32_t max_sequences() const override { return 1; }
  uint32_t ctx_len() const override { return parts_.ctx_len; }
  uint32_t block_len() const override { return parts_.ctx_len; }
  uint32_t block_count() const override { return 1; }
  uint32_t max_rows() const override { return parts_.chunk; }
  uint32_t max_pieces() const override { return 1; }
  uint32_t max_steps() const override;
  uint32_t max_tickets() const override { return parts_.table ? 1 : parts_.tickets; }
  uint32_t max_block_reads() const override { return 0; }
  bool holds_text() const override { return true; }
  uint32_t continues_from(uint32_t count) const override;
  std::span<const uint32_t> draft_rows(const DraftNeed& need) const override;
  bool may_prepare_drafts(const DraftNeed& need, uint32_t slots) const override;
  Task<Result<void>> prepare_drafts(DraftNeed need, uint32_t slots) override;
  bool drafts_by_host() const override { return parts_.drafts_by_host; }
  void take_image(const std::shared_ptr<const HeldImage>& image) override { parts_.images.take(image); }
  uint32_t uncut_rows(std::span<const uint32_t> tokens, uint32_t rows) const override {
    return parts_.images.uncut_rows(tokens, rows);
  }
  bool goes_on_without_lost() override { return parts_.watch && parts_.watch->goes_on_without_lost(); }

  std::shared_ptr<const AdapterMix> first_adapters() const override { return parts_.adapters->first(); }
  Result<void> check(const GenerationSettings& settings) const override;
  bool is_prepared(const GenerationSettings& settings) const override;
  Task<Result<void>> prepare(const GenerationSettings& settings) override;
  uint64_t objects_created_later() const override {
    return parts_.choices->objects_created() + parts_.drafts->objects_created();
  }
  bool can_prepare(const GenerationSettings& settings) const override {
    return parts_.adapters->is_resident(settings.adapters) || parts_.adapters->has_free_slot();
  }
  Result<void> begin(uint32_t slot, const GenerationSettings& settings,
                     std::span<const uint32_t> before) override;
  void end(uint32_t) override { parts_.adapters->end(0); }
  Result<void> mask(uint32_t slot, std::span<const uint32_t> allowed) override;
  Result<OpenStep> open(std::span<const uint32_t> decoding, std::span<const Piece> pieces,
                        const DecodeSteps& steps) override;
  Result<Ticket> close(const OpenStep& step) override;
  Task<Result<std::vector<uint32_t>>> tokens(Ticket ticket) override;
  Task<Result<std::vector<kernels::LogProbEntry>>> logprobs(Ticket ticket) override;
  Task<Result<std::vector<uint8_t>>> save(uint32_t count) override;
  Task<Result<void>> restore(uint32_t count, std::span<const uint8_t> bytes) override;

  // If later layers lie on another device: the token that was chosen there, before the step that evaluates it.
  Result<void> note_chosen(uint32_t token);
  // The bytes of the states in save()'s result.
  uint64_t saved_state_bytes() const { return parts_.states->saved_bytes(); }

  // For profiles: writes what a step over a prompt's tokens writes first, and submits nothing. Whether it has pictures.
  Result<bool> write_prompt(const Piece& piece);

 private:
  Result<void> write_state();
  Result<void> write_past();
  void note_entries(std::span<const uint32_t> entries, uint32_t rows);
  Result<void> write_text();
  Result<void> write_given(const DecodeSteps& steps);
  uint32_t draft_rounds(const DecodeSteps& steps) const;
  Result<OpenStep> open_prompt(const Piece& piece);
  Result<OpenStep> open_decode(const DecodeSteps& steps);
  OpenStep open_draft(uint32_t rounds, uint32_t rows);
  Ticket next_ticket(uint32_t entries, uint32_t rows) const;
  SamplerParts choices() const { return parts_of(settings_); }
  bool drafts(const DraftNeed& need) const;
  DraftNeed need() const;

  gpu::Device& device_;
  const OneSequenceParts parts_;
  gpu::ReadbackRing readback_;

  // State: the generation under way.
  GenerationSettings settings_;
  kernels::StepState
      host_state_;      // as the next step over a prompt will write it; pos: of the next token at most
  uint32_t shift_ = 0;  // of the next position of a prompt (ImageStore::axes)
  std::vector<uint32_t> recent_;   // the last kRecentTokens before the first sampled one
  std::vector<uint32_t> text_;     // the known tokens: the queued prompt, then the collected tokens
  size_t text_written_ = 0;        // tokens of text_ in the buffer that the drafter lookup searches
  bool text_begun_ = false;        // that buffer has a text
  bool has_row_settings_ = false;  // the rows of steps that draft have their settings
  uint32_t last_token_ = 0;        // the last token that was collected
  uint32_t next_slot_ = 0, ring_index_ = 0;
};

}  // namespace doppler::model
