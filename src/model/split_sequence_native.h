// The steps of a model whose layers lie on several devices. Each part of it (RunnerOptions::part) has a device, its
// own weights and cache, and a runner that knows nothing of the others. A step goes from part to part: the rows of the
// residual stream go by way of the host (stream_port.h), and the last part chooses the tokens.
//
//   scheduler ── step() ──> queue of part 0 ──> thread ──> GPU 0
//                     └──> queue of part 1 ──> whoever waits for tokens() ──> GPU 1
//
// - Calls stand in every part's queue in their order, and steps among them. So no part sees a write before an earlier
//   step.
// - A thread owns each device. The last one's belongs to the caller, who runs its queue in tokens().
// - A decode step waits in the first part's queue until its tokens were chosen. Steps are queued ahead, so that one
//   part works on a prompt's next chunk, or on another group of slots, while the next part works on this one.
// - The host knows each token, so it leaves out slots that have stopped, by the rule of kernels/step/step.h.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "model/device_model.h"

namespace doppler::model {

class SplitSequence final : public SequenceRunner {
 public:
  // The parts in the order of their layers. They must outlive it, and hold as many slots, blocks and positions each.
  static Result<std::unique_ptr<SplitSequence>> make(const std::vector<DeviceModel*>& parts);
  ~SplitSequence() override;

  uint32_t max_sequences() const override { return last().max_sequences(); }
  uint32_t ctx_len() const override { return last().ctx_len(); }
  uint32_t block_len() const override { return last().block_len(); }
  uint32_t block_count() const override { return last().block_count(); }
  uint32_t max_rows() const override { return last().max_rows(); }
  uint32_t max_pieces() const override { return last().max_pieces(); }
  uint32_t max_steps() const override { return 1; }
  uint32_t max_tickets() const override { return static_cast<uint32_t>(parts_.size()) + 1; }
  uint32_t steps_at_once() const override { return static_cast<uint32_t>(parts_.size()); }
  uint32_t max_block_reads() const override { return 0; }
  uint32_t prompt_share() const override { return last().prompt_share(); }
  uint32_t window() const override { return last().window(); }
  uint32_t window_block_count() const override { return last().window_block_count(); }
  bool has_states() const override;
  uint32_t checkpoint_count() const override;
  bool holds_text() const override { return last().holds_text(); }
  uint32_t continues_from(uint32_t count) const override;
  Task<Result<std::vector<uint8_t>>> save(uint32_t count) override;
  Task<Result<void>> restore(uint32_t count, std::span<const uint8_t> bytes) override;

  std::shared_ptr<const AdapterMix> first_adapters() const override { return nullptr; }
  Result<void> check(const GenerationSettings& settings) const override { return last().check(settings); }
  bool is_prepared(const GenerationSettings& settings) const override { return last().is_prepared(settings); }
  bool can_prepare(const GenerationSettings& settings) const override { return last().can_prepare(settings); }
  Task<Result<void>> prepare(const GenerationSettings& settings) override { return last().prepare(settings); }
  uint64_t objects_created_later() const override { return last().objects_created_later(); }
  Result<void> begin(uint32_t slot, const GenerationSettings& settings,
                     std::span<const uint32_t> before) override;
  void end(uint32_t slot) override;
  Result<void> map(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) override;
  Result<void> copy_block(uint32_t from, uint32_t to) override;
  Result<void> map_window(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) override;
  Result<void> copy_window_block(uint32_t from, uint32_t to) override;
  Result<void> save_states(uint32_t slot, uint32_t checkpoint) override;
  Result<void> load_states(uint32_t checkpoint, uint32_t slot) override;
  Result<void> mask(uint32_t slot, std::span<const uint32_t> allowed) override;
  Result<Ticket> step(std::span<const uint32_t> decoding, std::span<const Piece> pieces) override;
  Result<Ticket> decode(std::span<const uint32_t> decoding, const DecodeSteps& steps) override;
  Task<Result<std::vector<uint32_t>>> tokens(Ticket ticket) override;
  Task<Result<std::vector<kernels::LogProbEntry>>> logprobs(Ticket ticket) override;

 private:
  // A row that chooses a token: the place of that token, and how many the generation then has.
  struct Choice {
    uint32_t slot = 0, pos = 0, generated = 0;
    std::shared_ptr<const GenerationSettings> settings;
  };
  struct OwnedPiece {
    Piece piece;
    std::vector<uint32_t> tokens;
  };
  // One step on its way through the parts. Who has taken it from a queue may change it; mutex_ guards what others
  // look at.
  struct Step {
    std::vector<uint32_t> decoding, inputs;  // slots, and their tokens once the first part has it
    std::vector<OwnedPiece> pieces;
    std::vector<Choice> choices;                       // of the decoding slots, then of pieces
    std::vector<std::shared_ptr<const Step>> sources;  // of each decoding slot: the step that chose its token
    std::vector<uint8_t> stream;                       // what the next part begins with
    std::vector<uint32_t> tokens;                      // [max_sequences()], or kNoToken
    std::vector<kernels::LogProbEntry> logprobs;       // likewise, or empty
    std::vector<bool> stopped;                         // likewise: the slot goes on no more
    // Guarded by mutex_:
    size_t part = 0;  // whose turn it is
    bool done = false;
    uint32_t rows() const;
  };
  using Call = std::function<Result<void>(SequenceRunner&)>;
  struct Item {
    Call call;                   // or else
    std::shared_ptr<Step> step;  // this
  };
  // A step on a part's device. Its rows or tokens are on their way to the host.
  struct Pending {
    std::shared_ptr<Step> step;
    Ticket ticket;
  };
  struct Part {
    DeviceModel* model = nullptr;
    SequenceRunner* steps = nullptr;
    // Guarded by mutex_:
    std::deque<Item> queue;
    bool is_busy = false;
    std::thread thread;  // not of the last part
  };
  struct Slot {
    std::shared_ptr<const GenerationSettings> settings;
    uint32_t pos = 0, generated = 0;    // after all queued steps
    std::shared_ptr<const Step> chose;  // the last queued step that chooses its token
    uint32_t last_token = 0;            // collected
  };
  struct Outstanding {
    Ticket ticket;
    std::vector<std::shared_ptr<Step>> steps;
  };

  SplitSequence(const std::vector<DeviceModel*>& parts, gpu::ReadbackRing nothing);
  SequenceRunner& last() const { return *parts_.back().steps; }
  bool is_last(size_t part) const { return part + 1 == parts_.size(); }

  // By the caller.
  Result<void> call_all(const Call& call);
  Result<void> call_part(size_t part, Call call);
  void settle() const;  // all earlier parts have nothing more to do
  Result<void> wait_for_part(size_t part, Call call);
  std::shared_ptr<Step> make_step(std::span<const uint32_t> decoding, std::span<const Piece> pieces);
  Choice choose(uint32_t slot, uint32_t pos);
  Result<Ticket> queue(std::vector<std::shared_ptr<Step>> steps, uint32_t count);
  Task<Result<void>> run_last(std::shared_ptr<const Step> until);
  Task<Result<void>> begin_last(std::shared_ptr<Step> step);
  Task<Result<void>> collect_last(const Pending& pending);
  void note_stops(Step& step);
  Result<void> failure() const;

  // By the thread of an earlier part.
  void work(size_t part);
  Result<void> begin_step(size_t part, std::shared_ptr<Step> step, std::deque<Pending>& pending);
  Result<void> collect(size_t part, const Pending& pending);
  void fill_inputs(Step& step) const;
  void pass_on(Step& step, std::vector<uint8_t> stream);
  void give_up(Error error);

  // With mutex_ held.
  bool is_ready(size_t part) const;

  // By either.
  Result<Ticket> submit(size_t part, const Step& step) const;

  const gpu::ReadbackRing
      nothing_;  // read while an earlier part is waited for, so that the caller's loop turns
  std::deque<Part> parts_;
  std::vector<Slot> slots_;
  std::deque<Outstanding> outstanding_;
  std::deque<Pending> pending_;                  // of the last part
  std::vector<kernels::LogProbEntry> logprobs_;  // of the ticket that was collected last
  uint32_t next_ticket_ = 0;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Error> error_;
  bool stopping_ = false;
};

}  // namespace doppler::model
