// A SequenceRunner without a GPU that checks the scheduler's calls. Its model chooses each token by a hash of all
// tokens before it, as it finds them in the slot's blocks, and of seed and random counter. Each position also remembers
// a hash of its whole prefix, as keys and values do. So a wrong block, a lost or doubled step or a stale prefix changes
// the text, which `alone()` predicts. A violation of the contract (model/sequence_runner.h) is a test failure at once.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/task.h"
#include "model/sequence_runner.h"

namespace doppler::engine::testing {

struct RunnerShape {
  uint32_t sequences = 4, ctx_len = 64, block_len = 4, blocks = 64;
  uint32_t rows = 32, pieces = 4, steps = 16, tickets = 4, at_once = 1;
  uint32_t vocab = 97;
  uint32_t window = 0, window_blocks = 0;  // with a window: blocks more than the least
  uint32_t checkpoints = 0;                // with states
  uint32_t together = ~0u;                 // tokens of this number that follow each other are in one piece
};

class TestSequenceRunner final : public model::SequenceRunner {
 public:
  explicit TestSequenceRunner(RunnerShape shape);

  uint32_t max_sequences() const override { return shape_.sequences; }
  uint32_t ctx_len() const override { return shape_.ctx_len; }
  uint32_t block_len() const override { return shape_.block_len; }
  uint32_t block_count() const override { return shape_.blocks; }
  uint32_t max_rows() const override { return shape_.rows; }
  uint32_t max_pieces() const override { return shape_.pieces; }
  uint32_t max_steps() const override { return shape_.steps; }
  uint32_t max_tickets() const override { return shape_.tickets; }
  uint32_t steps_at_once() const override { return shape_.at_once; }
  uint32_t max_block_reads() const override { return 16; }
  bool has_states() const override { return states; }
  uint32_t checkpoint_count() const override { return states ? shape_.checkpoints : 0; }
  uint32_t window() const override { return shape_.window; }
  uint32_t uncut_rows(std::span<const uint32_t> tokens, uint32_t rows) const override {
    const auto is_cut = [&](uint32_t at) {
      return at < tokens.size() && tokens[at - 1] == shape_.together && tokens[at] == shape_.together;
    };
    uint32_t before = rows;
    while (before > 0 && is_cut(before)) --before;
    if (before > 0) return before;
    while (is_cut(rows)) ++rows;
    return rows;
  }
  uint32_t window_block_count() const override { return static_cast<uint32_t>(window_blocks_.size()); }

  std::span<const uint32_t> draft_rows(const model::DraftNeed& need) const override {
    asked_need_ = need;
    return draft_kinds;
  }

  Result<void> check(const model::GenerationSettings& settings) const override;
  bool is_prepared(const model::GenerationSettings& settings) const override {
    return (!lacks_plans || settings.sampling.top_n_sigma == 0) && has_adapters(settings);
  }
  bool can_prepare(const model::GenerationSettings& settings) const override {
    return has_adapters(settings) || free_adapter_slot() != nullptr;
  }
  void end(uint32_t slot) override { slots_[slot].adapters.clear(); }
  Task<Result<void>> prepare(const model::GenerationSettings& settings) override;
  Result<void> begin(uint32_t slot, const model::GenerationSettings& settings,
                     std::span<const uint32_t> before) override;
  Result<void> map(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) override;
  Result<void> copy_block(uint32_t from, uint32_t to) override;
  Result<void> map_window(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) override;
  Result<void> copy_window_block(uint32_t from, uint32_t to) override;
  Result<void> save_states(uint32_t slot, uint32_t checkpoint) override;
  Result<void> load_states(uint32_t checkpoint, uint32_t slot) override;
  Result<void> mask(uint32_t slot, std::span<const uint32_t> allowed) override;
  Result<model::Ticket> step(std::span<const uint32_t> decoding,
                             std::span<const model::Piece> pieces) override;
  Result<model::Ticket> decode(std::span<const uint32_t> decoding, const model::DecodeSteps& asked) override;
  Task<Result<std::vector<uint32_t>>> tokens(model::Ticket ticket) override;
  Task<Result<std::vector<kernels::LogProbEntry>>> logprobs(model::Ticket ticket) override;
  Task<Result<std::vector<uint8_t>>> read_block(uint32_t block) override;
  Task<Result<void>> write_block(uint32_t block, std::span<const uint8_t> bytes) override;

  // The tokens of a request when nothing else runs; says whether the last one is a stop.
  static std::vector<uint32_t> alone(const RunnerShape& shape, std::vector<uint32_t> prompt,
                                     const model::GenerationSettings& settings);

  // The content of a ticket, for tests that look at the order of things.
  struct Call {
    std::vector<uint32_t> decoding;
    uint32_t steps = 0, piece_rows = 0;
    std::vector<uint32_t> drafts = {};  // of each decoding slot
    std::vector<uint32_t> piece_slots;
  };
  std::vector<Call> calls;
  uint32_t begins = 0, copies = 0, reads = 0, writes = 0, loads = 0;
  size_t most_outstanding = 0;
  uint32_t fail_after = 0;  // tickets until one fails; 0: never

  // Asked at each write: whether the scheduler lets this block be written (held once, not published).
  std::function<bool(uint32_t block)> may_write, may_write_window;
  bool states = false;                      // slots have recurrent states
  bool all_must_decode = false;             // a slot that can decode and is left out of a ticket is a failure
  std::function<bool()> gives_fewer_steps;  // decode() may do fewer steps than asked
  // Holds tokens() back until let_go(), as a device does.
  bool holds = false;
  bool waiting() const { return gate_.has_value(); }
  void let_go();
  // Requests with top_n_sigma have no plans until prepare() was told that they are made.
  bool lacks_plans = false;
  uint32_t preparations = 0;
  // The adapters that may be there at a time, 0: all; and how many loads there were.
  uint32_t adapter_slots = 0, adapter_loads = 0;
  std::optional<Completion<Result<void>>> plans_made;
  std::vector<uint32_t> draft_kinds;  // rows of steps that draft; empty: it cannot draft
  void arrive();                      // what read_block() has read so far; tokens() does it too

 private:
  struct Position {
    uint32_t token = 0;
    uint64_t prefix = 0;  // hash of the tokens up to here; 0: never written
  };
  struct State {
    uint32_t pos = 0;
    uint64_t prefix = 0;
  };
  struct Slot {
    model::GenerationSettings settings;
    std::vector<uint32_t> table, windows, before, mask;
    std::vector<uint32_t> adapters;  // the key of those that it holds
    uint32_t pos = 0, token = 0, generated = 0, outstanding = 0;
    bool begun = false, chosen = false, stopped = false;
  };
  struct Outstanding {
    uint32_t id = 0;
    std::vector<uint32_t> slots, result;
    std::vector<std::pair<uint32_t, uint32_t>> uses;  // block, slot
  };
  bool has_adapters(const model::GenerationSettings& settings) const;
  // An entry of adapters_ that no slot holds. Null: there is none.
  const std::vector<uint32_t>* free_adapter_slot() const;
  Position& at(uint32_t slot, uint32_t pos);
  Position& window_at(uint32_t slot, uint32_t pos);
  uint64_t write(uint32_t slot, uint32_t pos, uint32_t token);
  uint32_t choose(uint32_t slot, uint64_t prefix);
  uint32_t decode_row(uint32_t slot);
  void check_writable(uint32_t block, uint32_t slot);
  void check_decoding(std::span<const uint32_t> decoding);
  Result<model::Ticket> decode_drafts(std::span<const uint32_t> decoding, model::DecodeSteps asked);
  std::vector<uint32_t> draft_entries(uint32_t slot, uint32_t rows, const model::SlotDrafts& given);
  Result<model::Ticket> issue(std::vector<uint32_t> slots, std::vector<uint32_t> result, uint32_t count);

  RunnerShape shape_;
  std::vector<std::vector<Position>> blocks_, window_blocks_;
  std::vector<Slot> slots_;
  std::vector<std::vector<uint32_t>> adapters_;  // by their slots: keys
  std::vector<State> states_, checkpoints_;
  std::vector<std::vector<uint32_t>> uses_;  // [block, slot]: outstanding tickets
  std::deque<Outstanding> outstanding_;
  std::optional<Completion<bool>> gate_;
  std::vector<Completion<bool>> reading_;
  uint32_t next_ticket_ = 1;
  mutable model::DraftNeed asked_need_;  // of the last draft_rows()
};

}  // namespace doppler::engine::testing
