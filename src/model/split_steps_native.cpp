// SplitSequence: the way of a step through the parts, and the threads of the earlier ones.
#include <algorithm>
#include <utility>

#include "base/trace.h"
#include "model/split_sequence_native.h"

namespace doppler::model {
namespace {

// Steps that a part has on its device: one runs, one is ready.
constexpr size_t kStepsAhead = 2;
// The time after which whoever waits for an earlier part looks at the callers.
constexpr auto kLook = std::chrono::microseconds(300);

bool ends_with(const GenerationSettings& settings, uint32_t generated, uint32_t pos, uint32_t ctx_len,
               uint32_t token) {
  const std::vector<uint32_t>& stops = settings.stop_tokens;
  const bool is_stop = !settings.ignore_stop && std::ranges::find(stops, token) != stops.end();
  return is_stop || generated >= settings.max_tokens || pos >= ctx_len;
}

}  // namespace

uint32_t SplitSequence::Step::rows() const {
  size_t rows = decoding.size();
  for (const OwnedPiece& piece : pieces) rows += piece.tokens.size();
  return static_cast<uint32_t>(rows);
}

bool SplitSequence::is_ready(size_t part) const {
  const std::deque<Item>& queue = parts_[part].queue;
  if (queue.empty()) return false;
  const Step* const step = queue.front().step.get();
  if (!step || error_) return true;
  const auto is_done = [](const auto& source) { return !source || source->done; };
  return step->part == part && (part != 0 || std::ranges::all_of(step->sources, is_done));
}

// ---- Earlier parts

void SplitSequence::work(size_t index) {
  Part& part = parts_[index];
  std::deque<Pending> pending;
  while (true) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      if (pending.empty()) {
        part.is_busy = false;
        changed_.notify_all();
        changed_.wait(lock, [&] { return stopping_ || is_ready(index); });
      }
      if (stopping_) return;
      if (pending.size() < kStepsAhead && is_ready(index)) {
        item = std::move(part.queue.front());
        part.queue.pop_front();
        part.is_busy = true;
      }
      if (error_) {
        pending.clear();
        continue;
      }
    }
    Result<void> done;
    if (item.call) {
      done = item.call(*part.steps);
    } else if (item.step) {
      done = begin_step(index, std::move(item.step), pending);
    } else {
      done = collect(index, pending.front());
      pending.pop_front();
    }
    if (!done) give_up(std::move(done).error());
  }
}

// Slots that have stopped are left out.
void SplitSequence::fill_inputs(Step& step) const {
  const std::lock_guard lock(mutex_);
  std::vector<uint32_t> goes_on;
  for (size_t i = 0; i < step.decoding.size(); ++i) {
    const uint32_t slot = step.decoding[i];
    const Step* const source = step.sources[i].get();
    step.stopped[slot] = !source || source->stopped[slot];
    if (step.stopped[slot]) continue;
    goes_on.push_back(slot);
    step.inputs.push_back(source->tokens[slot]);
  }
  step.decoding = std::move(goes_on);
  step.sources.clear();
}

Result<Ticket> SplitSequence::submit(size_t index, const Step& step) const {
  SequenceRunner& steps = *parts_[index].steps;
  if (step.pieces.empty()) return steps.decode(step.decoding, {.steps = 1});
  std::vector<Piece> pieces;
  for (const OwnedPiece& owned : step.pieces) {
    pieces.push_back(owned.piece);
    pieces.back().tokens = owned.tokens;
    if (!is_last(index)) pieces.back().sample = false;
  }
  return steps.step(step.decoding, pieces);
}

Result<void> SplitSequence::begin_step(size_t index, std::shared_ptr<Step> step,
                                       std::deque<Pending>& pending) {
  DeviceModel& model = *parts_[index].model;
  if (index == 0) fill_inputs(*step);
  if (step->rows() == 0) {
    pass_on(*step, {});
    return {};
  }
  if (index != 0) {
    DP_CHECK(gpu::run_to_completion(model.device(), model.stream_in().put(model.device(), step->stream)));
  }
  for (size_t i = 0; i < step->decoding.size(); ++i) {
    const uint32_t slot = step->decoding[i], token = step->inputs[i];
    const auto choice = std::ranges::find(step->choices, slot, &Choice::slot);
    DP_CHECK(model.one() ? model.one()->note_chosen(token)
                         : model.sequences()->place(slot, choice->pos - 1, token));
  }
  DP_TRY(const Ticket ticket, submit(index, *step));
  pending.push_back({.step = std::move(step), .ticket = ticket});
  return {};
}

Result<void> SplitSequence::collect(size_t index, const Pending& pending) {
  const TraceSpan span("wait for the stream");
  DeviceModel& model = *parts_[index].model;
  DP_TRY(std::vector<uint8_t> rows,
         gpu::run_to_completion(model.device(), model.stream_out().take(model.device(), pending.ticket.slot,
                                                                        pending.step->rows())));
  pass_on(*pending.step, std::move(rows));
  return {};
}

void SplitSequence::pass_on(Step& step, std::vector<uint8_t> stream) {
  {
    const std::lock_guard lock(mutex_);
    step.stream = std::move(stream);
    ++step.part;
  }
  changed_.notify_all();
}

void SplitSequence::give_up(Error error) {
  {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  changed_.notify_all();
}

// ---- The last part

Task<Result<void>> SplitSequence::run_last(std::shared_ptr<const Step> until) {
  const size_t index = parts_.size() - 1;
  Part& part = parts_[index];
  while (!until->done) {
    Item item;
    {
      std::unique_lock lock(mutex_);
      const auto is_awaited = [&] { return error_ || is_ready(index); };
      if (pending_.empty()) changed_.wait_for(lock, kLook, is_awaited);
      if (error_) co_return forward(*error_);
      if (pending_.size() < kStepsAhead && is_ready(index)) {
        item = std::move(part.queue.front());
        part.queue.pop_front();
      }
    }
    if (item.call) {
      DP_CO_CHECK(item.call(*part.steps));
    } else if (item.step) {
      auto beginning = begin_last(std::move(item.step));
      DP_CO_CHECK(co_await std::move(beginning));
    } else if (!pending_.empty()) {
      const Pending oldest = std::move(pending_.front());
      pending_.pop_front();
      auto collecting = collect_last(oldest);
      DP_CO_CHECK(co_await std::move(collecting));
    } else {
      auto looking = part.model->device().read(nothing_, 0, sizeof(uint32_t));
      DP_CO_CHECK(co_await std::move(looking));
    }
  }
  co_return Result<void>();
}

Task<Result<void>> SplitSequence::begin_last(std::shared_ptr<Step> step) {
  DeviceModel& model = *parts_.back().model;
  Pending begun{.step = step, .ticket = {}};
  if (step->rows() != 0) {
    auto putting = model.stream_in().put(model.device(), step->stream);
    DP_CO_CHECK(co_await std::move(putting));
    DP_CO_TRY(begun.ticket, submit(parts_.size() - 1, *step));
  }
  pending_.push_back(std::move(begun));
  co_return Result<void>();
}

Task<Result<void>> SplitSequence::collect_last(const Pending& pending) {
  Step& step = *pending.step;
  if (step.rows() != 0) {
    auto reading = last().tokens(pending.ticket);
    DP_CO_TRY(std::vector<uint32_t> tokens, co_await std::move(reading));
    if (pending.ticket.has_logprobs) {
      auto entries = last().logprobs(pending.ticket);
      DP_CO_TRY(step.logprobs, co_await std::move(entries));
    }
    if (!tokens.empty()) step.tokens = std::move(tokens);
  }
  note_stops(step);
  co_return Result<void>();
}

// Also by whom the step is done, so that the first part may go on.
void SplitSequence::note_stops(Step& step) {
  {
    const std::lock_guard lock(mutex_);
    for (const Choice& choice : step.choices) {
      const uint32_t token = step.tokens[choice.slot];
      step.stopped[choice.slot] = token == kernels::kNoToken ||
                                  ends_with(*choice.settings, choice.generated, choice.pos, ctx_len(), token);
    }
    step.stream.clear();
    step.done = true;
  }
  changed_.notify_all();
}

}  // namespace doppler::model
