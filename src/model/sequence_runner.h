// A step of several sequences, seen from the engine's scheduler: queue prompt pieces and decode steps of slots,
// collect tokens later. A slot is a place for one sequence in the step state (kernels/common/step_state.h); its keys
// and values lie in blocks of a pool, and a block table says which. The scheduler owns slots, blocks and tables; the
// runner does what it is told, in the order of the calls, and decides nothing. A runner of one slot may hold its text
// without blocks. On the GPU: sequence_plans.h, one_sequence.h and paged_runner.h; tests of the engine use a
// scripted one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "model/draft_need.h"
#include "model/generation.h"

namespace doppler::model {

struct HeldImage;  // held_image.h

// A run of a prompt's tokens, at most what SequenceRunner::max_rows() leaves beside the decoding slots.
struct Piece {
  uint32_t slot = 0;
  uint32_t pos = 0;  // of its first token; positions before it are in the slot's blocks
  std::span<const uint32_t> tokens;
  bool sample = false;                // the prompt ends here: its last row chooses the slot's first token
  std::optional<uint32_t> next = {};  // the token after them, if it is known
};

// A slot's drafts in a decode step, which the host gives.
struct SlotDrafts {
  std::span<const uint32_t> tokens;                   // fewer than DecodeSteps::rows
  std::span<const std::vector<uint32_t>> masks = {};  // of each row, if the settings ask for masks
};

// Decode steps of one ticket, each feeding the token of the one before: so many submits of so many steps.
struct DecodeSteps {
  uint32_t steps = 1, submits = 1;
  // A token and its drafts, of each slot in each step. For one sequence it is 1 or one of draft_rows(). For several it
  // is at most kernels::kMostDraftRows, and all tokens and drafts together are at most the last of draft_rows().
  uint32_t rows = 1;
  // The host's drafts of one step, of each decoding slot. The runner may leave out the last ones; then the ticket has
  // fewer rows.
  std::span<const SlotDrafts> given = {};
};

// Rows of prompts beside decoding slots that plans of few rows are made for.
inline constexpr uint32_t kPiecesBesideDecoding = 32;

class SequenceRunner {
 public:
  virtual ~SequenceRunner() = default;

  virtual uint32_t max_sequences() const = 0;    // slots 0 to max_sequences() - 1
  virtual uint32_t ctx_len() const = 0;          // most positions of one sequence
  virtual uint32_t block_len() const = 0;        // positions of a block
  virtual uint32_t block_count() const = 0;      // blocks of the pool
  virtual uint32_t max_rows() const = 0;         // of a step: decoding slots and tokens of pieces together
  virtual uint32_t max_pieces() const = 0;       // of a step
  virtual uint32_t max_steps() const = 0;        // of decode()
  virtual uint32_t max_tickets() const = 0;      // tickets whose tokens may be outstanding at a time
  virtual uint32_t max_block_reads() const = 0;  // read_block() calls that may be outstanding at a time
  // Rows of prompts beside decoding slots in a step that takes two to three times as long as one without.
  virtual uint32_t prompt_share() const { return kPiecesBesideDecoding; }

  // Steps that run at a time, each on a device of its own.
  virtual uint32_t steps_at_once() const { return 1; }

  // Layers that see a window may have a pool of blocks and a table of each slot of their own, so that what no step
  // reads any more can be given to others. A step reads so many positions for each row, its own the last. 0: they
  // have no such pool.
  virtual uint32_t window() const { return 0; }
  virtual uint32_t window_block_count() const { return 0; }  // no less than least_window_blocks()

  // Slots may have recurrent states besides blocks, which cannot be cut. A generation then begins at position 0,
  // where the slot's states stand already, or where a checkpoint does that load_states() put there. 0: no
  // checkpoints.
  virtual bool has_states() const { return false; }
  virtual uint32_t checkpoint_count() const { return 0; }

  // A runner of one slot may hold keys and values of its text as they come. Its one block is as long as the context,
  // and a generation begins after any position that continues_from() gives. This is the largest position, at most
  // `count`, after which the text can go on. Call it while no step is queued.
  virtual bool holds_text() const { return false; }
  virtual uint32_t continues_from(uint32_t count) const { return count; }
  // Saves the state of positions [0, count), `count` one of continues_from()'s, for a session, and restores it. Layout:
  // the runner's own.
  virtual Task<Result<std::vector<uint8_t>>> save(uint32_t) { co_return std::vector<uint8_t>(); }
  virtual Task<Result<void>> restore(uint32_t, std::span<const uint8_t>) { co_return Result<void>(); }

  // Prompts may have this picture's tokens from now on. Only models that read pictures are given any.
  virtual void take_image(const std::shared_ptr<const HeldImage>&) {}
  // The number of a prompt's next tokens, about `rows`, that a step may take. It never ends between tokens that see
  // each other. It may be more than `rows`, but never more than max_rows() less the slots.
  virtual uint32_t uncut_rows(std::span<const uint32_t>, uint32_t rows) const { return rows; }
  // False: a step has no room for the pictures of both. A piece always has room in a step of its own.
  virtual bool may_join(std::span<const Piece>, const Piece&) const { return true; }

  // The numbers of rows that decode steps with drafts may have, those of all slots together, ascending. Empty: such
  // steps do not draft, or their plans are not there yet. may_prepare_drafts() says whether prepare_drafts() can make
  // one for so many slots. It does so beside the steps of others, one call at a time. If it fails, such generations go
  // on without drafts.
  virtual std::span<const uint32_t> draft_rows(const DraftNeed&) const { return {}; }
  // True if the host gives all drafts (Drafter::kGiven), since it has work of its own in each step.
  virtual bool drafts_by_host() const { return max_sequences() > 1; }
  virtual bool may_prepare_drafts(const DraftNeed&, uint32_t /*slots*/) const { return false; }
  virtual Task<Result<void>> prepare_drafts(DraftNeed, uint32_t /*slots*/) { co_return Result<void>(); }
  // Called once, when tokens() failed. true: the tokens of that ticket and of all later ones are lost, and their place
  // in the cache too. From the next begin() on the runner works in another way that does not have this fault.
  virtual bool goes_on_without_lost() { return false; }

  // The adapters of generations that name none. Null: no adapters.
  virtual std::shared_ptr<const AdapterMix> first_adapters() const { return nullptr; }
  // Error: what a generation may not be here; begin() would refuse it.
  virtual Result<void> check(const GenerationSettings& settings) const = 0;
  // True if the plans and adapters that a generation needs are there. Otherwise prepare() brings them beside the steps
  // of others, as soon as can_prepare() is true; until then other generations must end. Call it before begin(), one
  // call at a time.
  virtual bool is_prepared(const GenerationSettings&) const { return true; }
  virtual bool can_prepare(const GenerationSettings&) const { return true; }
  virtual Task<Result<void>> prepare(const GenerationSettings&) { co_return Result<void>(); }
  virtual uint64_t objects_created_later() const { return 0; }  // on the GPU, by prepare()
  // A slot begins a generation after `before`, whose keys and values its blocks hold already.
  virtual Result<void> begin(uint32_t slot, const GenerationSettings& settings,
                             std::span<const uint32_t> before) = 0;
  // The slot's generation has ended. The caller queues nothing more before the next begin().
  virtual void end(uint32_t) {}
  // Entries `first`, first + 1, ... of the slot's block table. They must be there before a step is queued that may
  // write or read their positions.
  virtual Result<void> map(uint32_t, uint32_t, std::span<const uint32_t>) { return {}; }
  // Keys and values of a whole block, all layers of its pool: copy on write.
  virtual Result<void> copy_block(uint32_t, uint32_t) { return {}; }
  // The same for the pool and the table of layers with a window. A block that no later step reads may be another's at
  // once.
  virtual Result<void> map_window(uint32_t, uint32_t, std::span<const uint32_t>) { return {}; }
  virtual Result<void> copy_window_block(uint32_t, uint32_t) { return {}; }

  // Copies the slot's states, after all its queued steps, into a checkpoint, and a checkpoint into a slot, before
  // begin().
  virtual Result<void> save_states(uint32_t, uint32_t) { return {}; }
  virtual Result<void> load_states(uint32_t, uint32_t) { return {}; }

  // The tokens that the slot may choose next, bit t % 32 of word t / 32 for token t; of slots whose settings ask for
  // masks, before each step in which they choose one.
  virtual Result<void> mask(uint32_t slot, std::span<const uint32_t> allowed) = 0;

  // One step: the slots of `decoding` (each has chosen a token before) and the pieces, of other slots, together.
  virtual Result<Ticket> step(std::span<const uint32_t> decoding, std::span<const Piece> pieces) = 0;
  // Up to so many steps of only decoding slots; the ticket's count says how many entries. A slot that stops (stop
  // token, token limit, context full) leaves the steps that follow by itself.
  virtual Result<Ticket> decode(std::span<const uint32_t> decoding, const DecodeSteps& steps) = 0;
  // [ticket.count, max_sequences()]: the token that each slot chose in each step, or kNoToken. Every ticket is
  // collected, once and in order, also one of a step in which no slot chooses (count 0).
  virtual Task<Result<std::vector<uint32_t>>> tokens(Ticket ticket) = 0;
  // The log-probabilities of a ticket that has them, once, after tokens(): an entry a token; those of slots that ask
  // for none mean nothing.
  virtual Task<Result<std::vector<kernels::LogProbEntry>>> logprobs(Ticket ticket) = 0;

  // A block's keys and values, all layers of the first pool, for the host's cache. Layout: the runner's own. Once
  // started, a task has its place among the calls: those that follow may write the block, or read what was written.
  // `bytes` must stay until the task is done.
  virtual Task<Result<std::vector<uint8_t>>> read_block(uint32_t) { co_return std::vector<uint8_t>(); }
  virtual Task<Result<void>> write_block(uint32_t, std::span<const uint8_t>) { co_return Result<void>(); }
};

// The need of `sequences` slots whose next rows see windows, and of a step's rows of all slots; each end is inside a
// block.
struct WindowNeed {
  uint32_t window = 0, block_len = 0, sequences = 0;
  uint32_t rows = 0, steps = 0;  // of a step with pieces; decode steps of a ticket
};
constexpr uint32_t least_window_blocks(const WindowNeed& need) {
  const uint32_t seen = (need.window - 1 + need.block_len - 1) / need.block_len + 2;
  const uint32_t rows = std::max(need.rows, need.sequences * need.steps);
  return need.sequences * seen + (rows + need.block_len - 1) / need.block_len;
}
inline uint32_t least_window_blocks(const SequenceRunner& runner) {
  if (runner.window() == 0) return 0;
  return least_window_blocks({.window = runner.window(),
                              .block_len = runner.block_len(),
                              .sequences = runner.max_sequences(),
                              .rows = runner.max_rows(),
                              .steps = runner.max_steps()});
}

}  // namespace doppler::model
