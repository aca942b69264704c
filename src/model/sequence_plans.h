// The GPU's side of many sequences: what the host writes before a step, which plan it submits, what it reads back.
// DeviceModel loads it: buffers, cache and plans are that one's (device_model.h). Contract: sequence_runner.h.
// Read next: kernels/common/step_tables.h, kernels/step/arrange.h and advance.h (what the GPU does with the tables).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "kernels/common/step_tables.h"
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

// The endings of the names of plans whose rows choose a token.
struct PlanEndings {
  std::string greedy = ".greedy", sample = ".sample";
};

// The parts that a SequencePlans works on. Everything belongs to the DeviceModel and outlives it.
struct SequenceBuffers {
  gpu::Buffer *state = nullptr, *tokens = nullptr, *params = nullptr, *bias = nullptr, *counts = nullptr,
              *recent = nullptr, *ring = nullptr;
  HostTable* table = nullptr;      // each step needs its tokens' rows of this
  gpu::Buffer* block = nullptr;    // one block of all layers of a pool, on the way to another or to the host
  std::vector<CachePlace> caches;  // keys and values of each layer
  RecurrentStates* states = nullptr;  // of models that have them
  AdapterSet* adapters = nullptr;
  uint32_t checkpoints = 0;                // of recurrent states
  uint32_t window = 0, window_blocks = 0;  // of layers that have a pool of their own
  uint32_t prompt_share = kPiecesBesideDecoding;
  ImageInputs images = {};
  const DraftPlans* drafts = nullptr;
  std::function<Task<Result<void>>(DraftNeed, uint32_t slots)> add_drafts;
  const StreamOut* stream = nullptr;  // if later layers lie on another device: steps bring this, not tokens
  PlanEndings endings = {};

  uint64_t block_bytes(bool in_windows) const {  // of all layers of that pool
    uint64_t bytes = 0;
    for (const CachePlace& cache : caches) bytes += cache.in_windows == in_windows ? cache.block_bytes : 0;
    return bytes;
  }
};

// Decode steps of a ticket: enough that the host never holds the device up, few enough that a stop wastes little.
inline constexpr uint32_t kMostSteps = 64;

class SequencePlans final : public HalvedRunner {
 public:
  // `classes`: the rows that there is a decode plan for, ascending: "many.<rows>.greedy" and ".sample".
  // `piece_classes`: likewise for steps with pieces, "many.pieces.<rows>" and its endings. If `plans` has
  // "many.<rows>.short.greedy" and ".sample" too, those are for up to kernels::kShortKeysOfRows keys. `choices`: the
  // features that only some generations ask for, which `add` makes.
  SequencePlans(gpu::Device& device, SequenceBuffers buffers, kernels::StepTables tables, uint32_t ctx_len,
                uint32_t block_count, uint32_t vocab_size, uint32_t tickets, std::vector<uint32_t> classes,
                std::vector<uint32_t> piece_classes, const std::vector<gpu::Plan>& plans,
                const ChoicePlans& choices, std::function<Task<Result<void>>(SamplerParts)> add);
  // block_reads: blocks on their way to the host at a time.
  Task<Result<void>> make_readback(uint32_t block_reads);

  uint32_t max_sequences() const override { return tables_.sequences; }
  uint32_t ctx_len() const override { return ctx_len_; }
  uint32_t block_len() const override { return tables_.block_len; }
  uint32_t block_count() const override { return block_count_; }
  uint32_t max_rows() const override { return tables_.rows; }
  uint32_t max_pieces() const override { return kernels::kMaxPieces; }
  uint32_t max_steps() const override;
  uint32_t max_tickets() const override { return buffers_.table ? 1 : tickets_; }
  uint32_t max_block_reads() const override { return block_readback_.size(); }
  uint32_t prompt_share() const override { return buffers_.prompt_share; }
  void take_image(const std::shared_ptr<const HeldImage>& image) override { buffers_.images.take(image); }
  uint32_t uncut_rows(std::span<const uint32_t> tokens, uint32_t rows) const override {
    return buffers_.images.uncut_rows(tokens, rows);
  }
  bool may_join(std::span<const Piece> pieces, const Piece& piece) const override;
  bool has_states() const override { return buffers_.states != nullptr; }
  uint32_t checkpoint_count() const override { return buffers_.checkpoints; }
  uint32_t window() const override { return buffers_.window; }
  uint32_t window_block_count() const override { return buffers_.window_blocks; }

  std::span<const uint32_t> draft_rows(const DraftNeed& need) const override;
  bool may_prepare_drafts(const DraftNeed& need, uint32_t slots) const override;
  Task<Result<void>> prepare_drafts(DraftNeed need, uint32_t slots) override;

  Result<void> check(const GenerationSettings& settings) const override;
  std::shared_ptr<const AdapterMix> first_adapters() const override { return buffers_.adapters->first(); }
  bool is_prepared(const GenerationSettings& settings) const override {
    return choices_.has(parts_of(settings)) && buffers_.adapters->is_resident(settings.adapters);
  }
  bool can_prepare(const GenerationSettings& settings) const override {
    return buffers_.adapters->is_resident(settings.adapters) || buffers_.adapters->has_free_slot();
  }
  Task<Result<void>> prepare(const GenerationSettings& settings) override;
  uint64_t objects_created_later() const override { return choices_.objects_created(); }
  Result<void> begin(uint32_t slot, const GenerationSettings& settings,
                     std::span<const uint32_t> before) override;
  void end(uint32_t slot) override { buffers_.adapters->end(slot); }
  Result<void> map(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) override;
  Result<void> copy_block(uint32_t from, uint32_t to) override;
  Result<void> map_window(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) override;
  Result<void> copy_window_block(uint32_t from, uint32_t to) override;
  Result<void> save_states(uint32_t slot, uint32_t checkpoint) override;
  Result<void> load_states(uint32_t checkpoint, uint32_t slot) override;
  Result<void> mask(uint32_t slot, std::span<const uint32_t> allowed) override;
  Result<OpenStep> open(std::span<const uint32_t> decoding, std::span<const Piece> pieces,
                        const DecodeSteps& steps) override;
  Result<Ticket> close(const OpenStep& step) override;
  Task<Result<std::vector<uint32_t>>> tokens(Ticket ticket) override;
  Task<Result<std::vector<kernels::LogProbEntry>>> logprobs(Ticket ticket) override;
  Task<Result<std::vector<uint8_t>>> read_block(uint32_t block) override;
  Task<Result<void>> write_block(uint32_t block, std::span<const uint8_t> bytes) override;

  // If later layers lie on another device: the place of the slot's next decode step, and the token that was chosen
  // there.
  Result<void> place(uint32_t slot, uint32_t pos, uint32_t token);

  // The plan that decode steps of so many rows replay, if no row has more than `keys` keys at its end, and that of a
  // step with pieces: for profiles and tests.
  const gpu::Plan& decode_plan(bool greedy, uint32_t rows, uint32_t keys) const;
  // has_images: "many.images" in its place.
  const gpu::Plan& pieces_plan(bool greedy, bool samples, uint32_t rows, bool has_images = false) const;

 private:
  struct Slot {
    GenerationSettings settings;
    bool has_past = false;         // its choices depend on the text before
    std::vector<uint32_t> recent;  // the last tokens of its text
    uint32_t last = 0;             // the last collected token that it chose
    uint32_t end = 0;              // positions that it has evaluated, or fewer where it stopped
    uint32_t shift = 0;            // after them (ImageStore::axes)
    uint64_t begun = 0;            // the number of its generation
  };
  // Rows of steps that draft, in order: whose settings each row has.
  struct RowOwner {
    uint32_t slot = 0;
    uint64_t begun = 0;
    SamplerParts parts;
    bool operator==(const RowOwner&) const = default;
  };
  const gpu::Plan& plan(const std::string& name) const;
  uint32_t most_entries() const;
  Result<void> check_slot(uint32_t slot) const;
  Result<void> check_step(std::span<const uint32_t> decoding, std::span<const Piece> pieces) const;
  Result<void> write_request(std::span<const uint32_t> decoding, std::span<const Piece> pieces);
  // Returns whether the step has pictures.
  Result<bool> write_images(std::span<const uint32_t> decoding, std::span<const Piece> pieces);
  Result<void> write_past(uint32_t slot, uint32_t end);
  Result<OpenStep> open_pieces(std::span<const uint32_t> decoding, std::span<const Piece> pieces);
  Result<OpenStep> open_decode(std::span<const uint32_t> decoding, const DecodeSteps& steps);
  Result<OpenStep> open_drafts(std::span<const uint32_t> decoding, DecodeSteps steps);
  Result<void> write_draft_tables(std::span<const uint32_t> owners, uint32_t entries);
  Result<void> write_draft_masks(std::span<const uint32_t> decoding, const DecodeSteps& steps);
  Result<void> write_draft_settings(std::span<const uint32_t> owners, const DraftNeed& need);
  bool all_greedy(std::span<const uint32_t> decoding, std::span<const Piece> pieces) const;
  SamplerParts parts_of_step(std::span<const uint32_t> decoding, std::span<const Piece> pieces) const;
  OpenStep open_arranged(const gpu::Plan& base, uint32_t rows, uint32_t steps, SamplerParts parts) const;
  gpu::Plan block_copy(uint32_t block, bool into_cache, bool in_windows = false) const;
  Result<void> copy(uint32_t from, uint32_t to, bool in_windows);
  Result<void> map(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks, bool in_windows);
  Result<void> check_block(uint32_t block, bool in_windows = false) const;
  Result<void> check_states(uint32_t slot, uint32_t checkpoint) const;
  uint64_t block_bytes() const { return buffers_.block_bytes(/*in_windows=*/false); }

  gpu::Device& device_;
  SequenceBuffers buffers_;
  kernels::StepTables tables_;
  uint32_t ctx_len_, block_count_, vocab_size_, tickets_;
  std::vector<uint32_t> classes_, piece_classes_;
  const std::vector<gpu::Plan>& plans_;
  const ChoicePlans& choices_;
  const std::function<Task<Result<void>>(SamplerParts)> add_;
  gpu::ReadbackRing readback_, block_readback_;
  std::vector<bool> reading_;  // slots of block_readback_ in use
  std::vector<Slot> slots_;
  std::vector<RowOwner> row_owners_;
  uint64_t begun_ = 0;  // generations
  uint32_t next_ticket_ = 0, ring_index_ = 0;
};

}  // namespace doppler::model
