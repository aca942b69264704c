// Many requests over one SequenceRunner: who gets a slot, what goes into each step, which blocks a sequence holds. The
// host queues a few tickets ahead and reads tokens later, so that the device does not wait for it. A turn queues what
// fits and collects the oldest ticket:
//
//   auto stream = scheduler.submit({.tokens = prompt, .settings = settings});
//   while (co_await scheduler.turn()) print((*stream)->take());
//
// One thread; submit(), fork() and cancel() may also be called while a turn waits for its ticket. Whatever the
// schedule, a stream's tokens are those of the same request by itself (up to the rounding of other kernels).
// Read next: sequence.h (positions), admission.cpp (who begins), scheduler.cpp (steps and tickets),
// docs/design/sequences.md (what is promised).
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "engine/scheduler/block_tiers.h"
#include "engine/scheduler/host_drafter.h"
#include "engine/scheduler/sequence.h"
#include "engine/scheduler/state_checkpoints.h"
#include "engine/scheduler/step_costs.h"
#include "engine/scheduler/step_policy.h"
#include "engine/scheduler/stream.h"
#include "engine/scheduler/waiting_queue.h"
#include "model/sequence_runner.h"

namespace doppler::engine {

struct SchedulerConfig {
  HostDrafter* drafter =
      nullptr;  // of requests whose settings ask for a draft model; must outlive the scheduler
  uint32_t vocab_size = 0;
  uint32_t tickets_ahead = 2;  // queued while the host waits for the oldest: one runs, one is ready
  uint32_t prefill_share = 0;  // rows of prompts beside decoding slots; 0: the runner's prompt_share()
  uint32_t decode_steps = model::kDefaultBatch;  // of a ticket, if no request waits
  uint32_t piece_rows = 0;                       // of a prompt at a time; 0: as many as a step has
  // A piece of a prompt that takes longer makes its next pieces smaller, one at a time.
  double piece_seconds = std::numeric_limits<double>::infinity();
  // If a step takes longer than this, each ticket has one step, so that a reader gets each token when it is there. 20
  // ms a step are 50 tokens a second. That is about as fast as people see single words come, and 20 times the cost of a
  // ticket.
  Clock::duration single_steps = std::chrono::milliseconds(20);
  uint32_t max_waiting = 4096;                       // requests in the queue; more are refused
  Clock::duration aging = std::chrono::seconds(10);  // waiting that counts as one priority
  uint32_t quantum = 512;                            // tokens of a client's turn: a chunk of a prompt
  bool appends_forced = true;                        // tokens that a guide forces, without a step each
  uint64_t host_cache_bytes = 0;                     // for prefixes that leave the pool
  uint32_t least_kept =
      128;  // a prompt is cut to keep its recurrent states where that saves so many positions
  uint32_t kept_stride = 512;  // where a piece happens to end they are kept after so many, on trial
  PrefixSecret secret = random_prefix_secret();
  std::function<Clock::time_point()> now = Clock::now;
};

// Tokens that an answer may have at most, by the request and by the context.
uint32_t most_tokens(const Request& request, uint32_t ctx_len);

class Scheduler {
 public:
  // `runner` must outlive it. Errors: a configuration or a runner that leaves no step for a prompt.
  static Result<std::unique_ptr<Scheduler>> create(model::SequenceRunner& runner, SchedulerConfig config);

  // Errors at once: empty prompt, token out of range, prompt longer than the context or than the pool has blocks for,
  // priority out of range, more stop tokens or biases than the device takes, a full queue. Later ones are in the
  // stream. The values of settings.sampling are the caller's to check.
  Result<std::shared_ptr<Stream>> submit(Request request);
  // The errors that submit() would give at once. `waiting`: requests that wait elsewhere for this queue's turn.
  Result<void> check(Request request, size_t waiting) const;
  // A request whose prompt is what `parent` has come to, or a beginning of that. Full blocks are shared, and the
  // parent's last one is copied while it is in a slot; of one that has ended it is evaluated again.
  Result<std::shared_ptr<Stream>> fork(const Stream& parent, Request request);
  // The stream ends at once with StopReason::kCancelled and gets no more tokens.
  void cancel(Stream& stream);

  // Queues steps while tickets are free, then waits for the oldest ticket and hands out its tokens. false: there is
  // nothing to do. An error is the runner's: all streams end with it, and the scheduler does nothing any more.
  Task<Result<bool>> turn();

  // SchedulerConfig::decode_steps from now on; at least 1.
  void set_decode_steps(uint32_t steps) { config_.decode_steps = steps; }
  // For a runner that holds its text. held() gives its tokens while no request runs, unless the text has other adapters
  // than the runner's first. hold() sets the tokens after they were restored.
  const std::vector<uint32_t>& held() const;
  void hold(std::vector<uint32_t> tokens);

  size_t waiting_count() const { return waiting_.size(); }
  size_t running_count() const { return running_.size(); }  // in slots, also those that are leaving
  const BlockTiers& blocks() const { return blocks_; }
  const WindowBlocks& windows() const { return windows_; }
  // Checks that exactly the right sequences hold slots and blocks. For tests.
  Result<void> check() const;

 private:
  struct InFlight {
    struct Member {
      Sequence* sequence;
      bool chooses;         // or else it only fed a piece of its prompt
      uint32_t fed_to = 0;  // positions of its prompt after this ticket
      uint32_t rows = 0;    // of its prompt in it
      uint32_t drafts = 0;  // that the host gave
    };
    model::Ticket ticket;
    std::vector<Member> members;
    bool is_decode = false;  // without pieces of prompts
    uint32_t rows = 0;       // of a step of all its decoding sequences
    Clock::time_point queued_at;
  };
  struct Rank {  // who keeps blocks when they run out: higher level, then older
    int64_t level;
    uint64_t serial;
    bool below(const Rank& other) const {
      return level != other.level ? level < other.level : serial > other.serial;
    }
  };
  Scheduler(model::SequenceRunner& runner, SchedulerConfig config);

  // admission.cpp
  void choose_adapters(Request& request) const;
  static std::vector<uint32_t> all_extras(const Request& request);
  std::vector<uint32_t> extras_of_first(const std::vector<uint32_t>& tokens) const;
  Result<void> check_request(const Request& request, size_t waiting) const;
  Result<void> admit(uint32_t budget);
  enum class Beginning : uint8_t {
    kBegun,
    kNoBlocks,  // too few are free
    kNoSlot,
    kPrefixSoon,  // a part of its prefix is being evaluated for another sequence: better waited for
    kPlansSoon,   // the plans that it needs are being made
  };
  Result<Beginning> begin(Sequence& sequence);
  bool has_plans(const Sequence& sequence);
  void settle_plans(const Result<void>& made);
  Result<void> begin_in_slot(Sequence& sequence, uint32_t start);
  uint32_t start_in_held(const Sequence& sequence) const;
  bool outranks(const Sequence* waiting, const Sequence* running) const;
  bool comes_soon(const Sequence& sequence, size_t found) const;
  size_t usable_blocks(const Sequence& sequence, size_t known) const;
  Result<void> copy_forked(Sequence& sequence, std::vector<uint32_t>& blocks, uint32_t& start);
  void expire();

  // cuts.cpp
  void plan_cuts(Sequence& sequence, uint32_t start, size_t shared) const;
  bool states_come_soon(const Sequence& sequence, size_t found) const;
  uint32_t rows_of_piece(const Sequence& sequence, uint32_t rows) const;
  Result<void> keep_states(Sequence& sequence);

  // scheduler.cpp
  Task<Result<bool>> advance();
  Result<bool> queue_step();
  Result<void> queue_mixed(const std::vector<Sequence*>& decoding, const std::vector<Sequence*>& prompts,
                           uint32_t budget);
  Result<void> queue_decode(const std::vector<Sequence*>& decoding, model::DecodeSteps steps);
  size_t tickets_ahead() const;
  model::DecodeSteps choose_steps(const std::vector<Sequence*>& decoding) const;
  uint32_t most_steps(const std::vector<Sequence*>& decoding) const;
  void note_pace(const InFlight& collected);
  void note_piece(Sequence& sequence, uint32_t rows);
  static std::vector<uint32_t> known_tokens(const Sequence& sequence);
  Task<Result<void>> begin_lost_again();
  void hand_out(const InFlight& in_flight, std::span<const uint32_t> tokens,
                std::span<const kernels::LogProbEntry> logprobs);
  void accept(Sequence& sequence, uint32_t token);
  void guide(Sequence& sequence);
  void take(Sequence& sequence, uint32_t token);
  void end(Sequence& sequence, StopReason reason);
  void end(Sequence& sequence, Error error);
  void leave(Sequence& sequence);
  void fail_all(const Error& error);

  // drafting.cpp
  bool prepare_drafts(const model::DraftNeed& need, uint32_t slots);
  void prepare_next_plan(const model::DraftNeed& need, uint32_t slots);
  bool finds_drafts(Sequence& sequence) const;
  Result<void> choose_drafts(Sequence& sequence, model::DecodeSteps& steps);
  Result<void> give_drafts(Sequence& sequence, std::span<const uint32_t> rows, model::DecodeSteps& steps);
  Result<std::vector<uint32_t>> allowed_drafts(Sequence& sequence, std::span<const uint32_t> drafts);
  Task<Result<void>> propose_drafts();
  bool waits_for_drafts(const Sequence& sequence);
  bool may_decode(const Sequence* sequence) {
    return sequence->may_decode() && !(sequence->in_flight > 0 && waits_for_drafts(*sequence));
  }
  StepCosts& costs_of(const Sequence& sequence);
  model::DraftNeed need_of(const Sequence& sequence) const;
  void note_decode(Sequence& sequence, const model::Ticket& ticket, std::span<const uint32_t> entries);
  std::vector<model::SlotDrafts> given_drafts(const std::vector<Sequence*>& decoding, uint32_t rows);

  // drafting_together.cpp
  Result<bool> choose_together(const std::vector<Sequence*>& decoding, model::DecodeSteps& steps);
  bool propose_together(Sequence& sequence);
  bool awaits_drafts() const;
  void note_together(const InFlight& in_flight, std::span<const uint32_t> tokens);

  // forced.cpp
  Result<void> append_forced(Sequence& sequence);
  Result<void> evaluate_forced(Sequence& sequence, uint32_t from);

  // growth.cpp
  Result<void> grow(std::vector<Sequence*>& decoding, uint32_t& steps);
  Sequence* lowest() const;
  bool preempt(Sequence& sequence);
  bool make_room();
  PrefixKey next_key(const Sequence& sequence) const;
  void publish(Sequence& sequence);
  void release(Sequence& sequence);
  Rank rank(const Sequence& sequence, Clock::time_point now) const;

  model::SequenceRunner& runner_;
  SchedulerConfig config_;
  BlockTiers blocks_;
  WindowBlocks windows_;
  StateCheckpoints states_;
  WaitingQueue waiting_;
  std::map<uint64_t, std::unique_ptr<Sequence>> sequences_;  // waiting and running, by serial
  std::vector<Sequence*> running_;                           // in slots, in order of their beginning
  std::vector<uint32_t> free_slots_;
  std::deque<InFlight> in_flight_;
  model::GenerationSettings preparing_for_;  // whose plans are being made
  Task<Result<void>> preparing_;             // valid while they are
  bool prepares_drafts_ = false;             // the plans are of steps that draft
  uint32_t tickets_to_plan_ = 0;             // that are queued before the next plan of such steps is made
  // given: of steps that wait for the host's drafts. together: of several sequences, by the rows of all.
  StepCosts costs_, given_costs_, together_costs_;
  std::vector<uint32_t> held_, held_extras_;  // extras: what else keys and values depend on
  Clock::time_point collected_at_;            // when the last ticket came
  Clock::duration step_time_{};               // of the last ticket that only decoded
  uint64_t next_serial_ = 1;
  std::optional<Error> broken_;
};

}  // namespace doppler::engine
