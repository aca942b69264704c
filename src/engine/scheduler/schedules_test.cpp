// Random schedules of the scheduler over the scripted runner: submits, cancels, forks, deadlines, priorities, common
// prefixes, pools from tight to ample, calls in the middle of a turn. After each turn slots and blocks must add up. In
// the end each stream must have the tokens that its request gets by itself, and no block may be held.
// DOPPLER_SCHEDULES=first:count in the environment runs others than the usual ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "engine/scheduler/scheduler.h"
#include "engine/scheduler/test_sequence_runner.h"
#include "kernels/step/draft_text.h"

namespace doppler::engine {
namespace {

using testing::RunnerShape;
using testing::TestSequenceRunner;

constexpr uint32_t kFirstSchedule = 1, kScheduleCount = 6000;
constexpr uint32_t kMostTurns = 20000;  // no schedule takes more: a request that waits for ever would

struct Totals {
  uint64_t streams = 0, tokens = 0, cached = 0, preemptions = 0, cancelled = 0, expired = 0, copies = 0,
           restored = 0, refused = 0, states = 0, drafted = 0, accepted = 0;
};

class Schedule {
 public:
  Schedule(uint32_t seed, Totals& totals) : random_(seed), totals_(totals) {}

  void run() {
    RunnerShape shape = random_shape();
    TestSequenceRunner runner(shape);
    runner.holds = chance(50);
    runner.states = chance(30);
    if (chance(30)) runner.gives_fewer_steps = [this] { return chance(50); };
    const SchedulerConfig config = random_config();
    auto created = Scheduler::create(runner, config);
    ASSERT_TRUE(created) << created.error().message();
    scheduler_ = std::move(*created);
    runner.may_write = [&](uint32_t block) {
      const BlockPool& pool = scheduler_->blocks().pool();
      return pool.references(block) == 1 && !pool.published(block);
    };
    runner.may_write_window = [&](uint32_t block) {
      const BlockPool& pool = scheduler_->windows().pool();
      return pool.references(block) == 1 && !pool.published(block);
    };
    for (int i = 0; i < 3; ++i) {
      std::vector<uint32_t> prefix(number(1, shape.ctx_len - 1));
      for (uint32_t& token : prefix) token = number(0, shape.vocab - 1);
      prefixes_.push_back(prefix);
    }
    left_ = number(1, 24);
    cancels_ = chance(70);
    has_priorities_ = chance(60);
    drafts_ = shape.sequences > 1 && shape.steps == kernels::kMostDraftRows && !runner.states && chance(90);
    if (drafts_) runner.draft_kinds = {2, 4, 8, number(9, 48)};
    // While drafts are in flight, an answer may look as if its end was queued.
    runner.all_must_decode = ample_ && !cancels_ && !has_priorities_ && !drafts_;
    const uint32_t busy = number(2, 60);  // per cent of the turns with something new
    for (uint32_t turns = 0;; ++turns) {
      ASSERT_LT(turns, kMostTurns) << "a request waits for ever";
      if (chance(busy)) act(shape);
      Task<Result<bool>> task = scheduler_->turn();
      task.start();
      while (!task.done()) {
        ASSERT_TRUE(runner.waiting());
        if (chance(20)) act(shape);
        runner.let_go();
      }
      const Result<bool> more = task.take();
      ASSERT_TRUE(more) << more.error().message();
      check_streams(shape, false);
      const Result<void> sound = scheduler_->check();
      ASSERT_TRUE(sound) << sound.error().message();
      if (::testing::Test::HasFailure()) return;
      now_ += std::chrono::milliseconds(number(0, 20));
      if (*more) continue;
      if (left_ == 0) break;
      act(shape);
    }
    check_streams(shape, true);
    for (const TestSequenceRunner::Call& call : runner.calls) {
      EXPECT_TRUE(call.decoding.empty() || call.piece_rows <= config.prefill_share * kMostShares)
          << "others wait for a prompt";
      EXPECT_LE(call.steps, config.decode_steps);
    }
    EXPECT_EQ(scheduler_->running_count(), 0u);
    EXPECT_EQ(scheduler_->waiting_count(), 0u);
    EXPECT_EQ(scheduler_->blocks().pool().free_count(), shape.blocks) << "a block is leaked";
    const BlockPool& windows = scheduler_->windows().pool();
    EXPECT_EQ(windows.free_count(), windows.block_count()) << "a block of a window is leaked";
    EXPECT_LE(scheduler_->blocks().host().used_bytes(), scheduler_->blocks().host().budget_bytes());
    totals_.copies += runner.copies;
    totals_.restored += runner.writes;
    totals_.states += runner.loads;
  }

 private:
  struct Running {
    std::shared_ptr<Stream> stream;
    std::vector<uint32_t> alone, got;
    bool cancelled = false, deadline = false;
  };

  uint32_t number(uint32_t least, uint32_t most) {
    return std::uniform_int_distribution<uint32_t>(least, most)(random_);
  }
  bool chance(uint32_t percent) { return number(1, 100) <= percent; }

  RunnerShape random_shape() {
    RunnerShape shape;
    shape.sequences = number(1, 6);
    shape.ctx_len = number(8, 60);
    shape.block_len = number(1, 7);
    const uint32_t whole = blocks_of(shape.ctx_len, shape.block_len);
    ample_ = chance(40);
    shape.blocks = ample_ ? whole * (shape.sequences + 1) : number(std::max(1u, whole / 2), whole * 2);
    shape.rows = shape.sequences + number(1, 30);
    shape.pieces = number(1, 4);
    shape.steps = chance(40) ? kernels::kMostDraftRows : number(1, 8);
    shape.tickets = number(1, 4);
    if (chance(50)) {
      shape.window = number(1, 24);
      shape.window_blocks = number(0, 40);
    }
    shape.checkpoints = number(0, 8);
    return shape;
  }
  SchedulerConfig random_config() {
    SchedulerConfig config;
    config.vocab_size = RunnerShape().vocab;
    config.tickets_ahead = number(1, 3);
    config.prefill_share = number(1, 8);
    config.decode_steps = number(1, 8);
    config.aging = std::chrono::milliseconds(number(10, 2000));
    config.quantum = number(1, 64);
    config.least_kept = number(1, 16);
    config.kept_stride = number(1, 16);
    config.host_cache_bytes = chance(50) ? 0 : number(16, 4000);
    config.secret = {.low = 1, .high = 2};
    config.now = [this] { return now_; };
    return config;
  }

  // Some requests draft, and predict their answers with some errors.
  void add_drafts(const RunnerShape& shape, Request& request) {
    if (!drafts_ || chance(40) || request.tokens.size() >= shape.ctx_len) return;
    request.settings.drafter = model::Drafter::kLookup;
    request.settings.greedy = chance(50);  // such a step has another plan
    request.settings.prediction = TestSequenceRunner::alone(shape, request.tokens, request.settings);
    for (uint32_t& token : request.settings.prediction) token += chance(8) ? 1 : 0;
    request.drafts =
        DraftPolicy(chance(50) ? DraftUse::kAlways : DraftUse::kWhereFaster, chance(50) ? 0 : number(2, 8));
  }

  void act(const RunnerShape& shape) {
    if (cancels_ && !streams_.empty() && chance(25)) {
      Running& running = streams_[number(0, static_cast<uint32_t>(streams_.size()) - 1)];
      running.cancelled |= !running.stream->ended();
      scheduler_->cancel(*running.stream);
      return;
    }
    if (left_ == 0) return;
    --left_;
    Request request;
    request.settings.seed = number(0, 3);
    request.settings.max_tokens = chance(20) ? 0 : number(1, 40);
    request.settings.ignore_stop = chance(20);
    for (uint32_t i = number(0, 3); i > 0; --i)
      request.settings.stop_tokens.push_back(number(0, shape.vocab - 1));
    request.client = number(0, 2);
    request.priority = static_cast<int32_t>(chance(50) || !has_priorities_ ? 0 : number(0, 7));
    if (chance(10)) request.deadline = now_ + std::chrono::milliseconds(number(0, 300));
    std::vector<uint32_t> prompt;
    Result<std::shared_ptr<Stream>> stream = fail(ErrorKind::kInternal, "not asked");
    if (!streams_.empty() && chance(20)) {
      const Stream& parent = *streams_[number(0, static_cast<uint32_t>(streams_.size()) - 1)].stream;
      prompt = parent.sequence();
      if (chance(30))
        prompt.resize(number(1, static_cast<uint32_t>(prompt.size())));  // the part that was read
      request.tokens = prompt;
      add_drafts(shape, request);
      stream = scheduler_->fork(parent, request);
    } else {
      const std::vector<uint32_t>& prefix = prefixes_[number(0, 2)];
      prompt.assign(prefix.begin(), prefix.begin() + number(0, static_cast<uint32_t>(prefix.size())));
      for (uint32_t i = chance(50) ? 0 : number(0, 12); i > 0; --i)
        prompt.push_back(number(0, shape.vocab - 1));
      if (prompt.empty()) prompt.push_back(1);
      request.tokens = prompt;
      add_drafts(shape, request);
      stream = scheduler_->submit(request);
    }
    if (!stream) {
      ++totals_.refused;
      const size_t room = shape.ctx_len + 1 - std::min<size_t>(prompt.size(), shape.ctx_len);
      const size_t most =
          request.settings.max_tokens == 0 ? room : std::min<size_t>(room, request.settings.max_tokens);
      EXPECT_TRUE(prompt.size() >= shape.ctx_len ||
                  blocks_of(static_cast<uint32_t>(prompt.size() + most) - 1, shape.block_len) > shape.blocks)
          << stream.error().message();
      return;
    }
    streams_.push_back({.stream = *stream,
                        .alone = TestSequenceRunner::alone(shape, prompt, request.settings),
                        .deadline = request.deadline.has_value()});
  }

  void check_streams(const RunnerShape& shape, bool all_done) {
    for (Running& r : streams_) {
      for (const uint32_t token : r.stream->take()) r.got.push_back(token);
      ASSERT_LE(r.got.size(), r.alone.size()) << "stream " << r.stream->id();
      ASSERT_TRUE(std::equal(r.got.begin(), r.got.end(), r.alone.begin())) << "stream " << r.stream->id();
      if (!all_done) continue;
      ASSERT_TRUE(r.stream->ended()) << "stream " << r.stream->id();
      const StreamTimings& timings = r.stream->timings();
      EXPECT_EQ(timings.generated_tokens, r.got.size());
      ++totals_.streams;
      totals_.tokens += r.got.size();
      totals_.cached += timings.cached_tokens;
      totals_.drafted += timings.drafts.drafted;
      totals_.accepted += timings.drafts.accepted;
      totals_.preemptions += timings.preemptions;
      EXPECT_TRUE(!ample_ || has_priorities_ || timings.preemptions == 0);
      if (r.stream->error()) {
        EXPECT_TRUE(r.deadline) << r.stream->error()->message();
        EXPECT_TRUE(r.got.empty());
        ++totals_.expired;
      } else if (*r.stream->reason() == StopReason::kCancelled) {
        EXPECT_TRUE(r.cancelled);
        ++totals_.cancelled;
      } else {
        EXPECT_EQ(r.got.size(), r.alone.size()) << "stream " << r.stream->id() << " lost tokens";
        const bool full = timings.prompt_tokens + r.got.size() == shape.ctx_len + 1;
        EXPECT_TRUE(*r.stream->reason() != StopReason::kContextFull || full);
      }
    }
  }

  std::mt19937 random_;
  Totals& totals_;
  Clock::time_point now_{};
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<std::vector<uint32_t>> prefixes_;
  std::vector<Running> streams_;
  uint32_t left_ = 0;   // requests to come
  bool ample_ = false;  // blocks for all slots: within one priority no sequence is ever preempted or left out
  bool cancels_ = true;
  bool has_priorities_ = true;
  bool drafts_ = false;
};

TEST(Schedules, EveryStreamGetsTheTokensOfItsRequestAlone) {
  uint32_t first = kFirstSchedule, count = kScheduleCount;
  if (const char* asked = std::getenv("DOPPLER_SCHEDULES")) std::sscanf(asked, "%u:%u", &first, &count);
  Totals totals;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    Schedule(seed, totals).run();
    ASSERT_FALSE(HasFailure()) << "schedule " << seed;
  }
  if (count < kScheduleCount) return;
  // Each path has been taken often.
  EXPECT_GT(totals.tokens, 500000u);
  EXPECT_GT(totals.cached, 100000u);
  EXPECT_GT(totals.preemptions, 1000u);
  EXPECT_GT(totals.cancelled, 5000u);
  EXPECT_GT(totals.expired, 500u);
  EXPECT_GT(totals.copies, 1000u);
  EXPECT_GT(totals.restored, 5000u);
  EXPECT_GT(totals.states, 1000u);
  EXPECT_GT(totals.accepted, 20000u);
  EXPECT_GT(totals.drafted, totals.accepted);
  std::printf(
      "%llu streams, %llu tokens, %llu cached, %llu preemptions, %llu cancelled, %llu expired, %llu copies, "
      "%llu restored, %llu refused, %llu states loaded, %llu drafted, %llu right\n",
      static_cast<unsigned long long>(totals.streams), static_cast<unsigned long long>(totals.tokens),
      static_cast<unsigned long long>(totals.cached), static_cast<unsigned long long>(totals.preemptions),
      static_cast<unsigned long long>(totals.cancelled), static_cast<unsigned long long>(totals.expired),
      static_cast<unsigned long long>(totals.copies), static_cast<unsigned long long>(totals.restored),
      static_cast<unsigned long long>(totals.refused), static_cast<unsigned long long>(totals.states),
      static_cast<unsigned long long>(totals.drafted), static_cast<unsigned long long>(totals.accepted));
}

}  // namespace
}  // namespace doppler::engine
