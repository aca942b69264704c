// SplitSequence's calls: what stands in the queues of the parts, and the tickets. The way of a step through the parts:
// split_steps_native.cpp.
#include "model/split_sequence_native.h"

#include <algorithm>
#include <utility>

namespace doppler::model {
namespace {

// Decoding slots of a group at least. A step of few rows takes nearly as long as one of twice as many. Chosen, not
// measured.
constexpr size_t kLeastOfGroup = 2;

}  // namespace

Result<std::unique_ptr<SplitSequence>> SplitSequence::make(const std::vector<DeviceModel*>& parts) {
  gpu::Device& device = parts.back()->device();
  DP_TRY(gpu::ReadbackRing nothing,
         gpu::run_to_completion(device, device.create_readback_ring(1, sizeof(uint32_t))));
  return std::unique_ptr<SplitSequence>(new SplitSequence(parts, std::move(nothing)));
}

SplitSequence::SplitSequence(const std::vector<DeviceModel*>& parts, gpu::ReadbackRing nothing)
    : nothing_(std::move(nothing)) {
  for (DeviceModel* const part : parts) {
    Part& made = parts_.emplace_back();
    made.model = part;
    made.steps = part->runner();
  }
  slots_.resize(max_sequences());
  for (size_t i = 0; !is_last(i); ++i) parts_[i].thread = std::thread([this, i] { work(i); });
}

SplitSequence::~SplitSequence() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (Part& part : parts_) {
    if (part.thread.joinable()) part.thread.join();
  }
}

bool SplitSequence::has_states() const {
  return std::ranges::any_of(parts_, [](const Part& part) { return part.steps->has_states(); });
}

uint32_t SplitSequence::checkpoint_count() const {
  uint32_t count = UINT32_MAX;
  for (const Part& part : parts_) {
    if (part.steps->has_states()) count = std::min(count, part.steps->checkpoint_count());
  }
  return count == UINT32_MAX ? 0 : count;
}

// A place after which all parts can go on.
uint32_t SplitSequence::continues_from(uint32_t count) const {
  settle();
  for (bool changed = true; changed;) {
    changed = false;
    for (const Part& part : parts_) {
      const uint32_t from = part.steps->continues_from(count);
      changed = changed || from != count;
      count = from;
    }
  }
  return count;
}

Result<void> SplitSequence::begin(uint32_t slot, const GenerationSettings& settings,
                                  std::span<const uint32_t> before) {
  DP_CHECK(check(settings));
  const auto own = std::make_shared<const GenerationSettings>(settings);
  slots_[slot] = {.settings = own,
                  .pos = static_cast<uint32_t>(before.size()),
                  .generated = settings.generated,
                  .chose = nullptr,
                  .last_token = kernels::kNoToken};
  const std::vector<uint32_t> text(before.begin(), before.end());
  for (size_t i = 0; i < parts_.size(); ++i) {
    // Nothing is chosen in the earlier parts.
    const auto of_part = is_last(i) ? own : std::make_shared<const GenerationSettings>();
    DP_CHECK(call_part(
        i, [slot, of_part, text](SequenceRunner& steps) { return steps.begin(slot, *of_part, text); }));
  }
  return {};
}

// The earlier parts of one sequence count the last token too, which no step evaluates.
void SplitSequence::end(uint32_t slot) {
  const uint32_t token = slots_[slot].last_token;
  for (size_t i = 0; i < parts_.size(); ++i) {
    OneSequence* const one = is_last(i) || token == kernels::kNoToken ? nullptr : parts_[i].model->one();
    const Result<void> posted = call_part(i, [slot, token, one](SequenceRunner& steps) -> Result<void> {
      if (one) DP_CHECK(one->note_chosen(token));
      steps.end(slot);
      return {};
    });
    if (!posted) give_up(posted.error());
  }
  slots_[slot].chose = nullptr;
}

Result<void> SplitSequence::map(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) {
  return call_all([slot, first, own = std::vector<uint32_t>(blocks.begin(), blocks.end())](
                      SequenceRunner& steps) { return steps.map(slot, first, own); });
}

Result<void> SplitSequence::map_window(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) {
  return call_all([slot, first, own = std::vector<uint32_t>(blocks.begin(), blocks.end())](
                      SequenceRunner& steps) { return steps.map_window(slot, first, own); });
}

Result<void> SplitSequence::copy_block(uint32_t from, uint32_t to) {
  return call_all([from, to](SequenceRunner& steps) { return steps.copy_block(from, to); });
}

Result<void> SplitSequence::copy_window_block(uint32_t from, uint32_t to) {
  return call_all([from, to](SequenceRunner& steps) { return steps.copy_window_block(from, to); });
}

Result<void> SplitSequence::save_states(uint32_t slot, uint32_t checkpoint) {
  return call_all([slot, checkpoint](SequenceRunner& steps) -> Result<void> {
    if (!steps.has_states()) return {};
    return steps.save_states(slot, checkpoint);
  });
}

Result<void> SplitSequence::load_states(uint32_t checkpoint, uint32_t slot) {
  return call_all([slot, checkpoint](SequenceRunner& steps) -> Result<void> {
    if (!steps.has_states()) return {};
    return steps.load_states(checkpoint, slot);
  });
}

Result<void> SplitSequence::mask(uint32_t slot, std::span<const uint32_t> allowed) {
  return call_part(parts_.size() - 1, [slot, own = std::vector<uint32_t>(allowed.begin(), allowed.end())](
                                          SequenceRunner& steps) { return steps.mask(slot, own); });
}

Result<void> SplitSequence::call_all(const Call& call) {
  for (size_t i = 0; i < parts_.size(); ++i) DP_CHECK(call_part(i, call));
  return {};
}

// The last part does it at once, unless steps wait there.
Result<void> SplitSequence::call_part(size_t part, Call call) {
  DP_CHECK(failure());
  Part& to = parts_[part];
  if (is_last(part) && to.queue.empty()) return call(*to.steps);
  {
    const std::lock_guard lock(mutex_);
    to.queue.push_back({.call = std::move(call), .step = nullptr});
  }
  changed_.notify_all();
  return {};
}

Result<void> SplitSequence::wait_for_part(size_t part, Call call) {
  DP_CHECK(call_part(part, std::move(call)));
  settle();
  return failure();
}

void SplitSequence::settle() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    return error_ || std::all_of(parts_.begin(), parts_.end() - 1,
                                 [](const Part& part) { return part.queue.empty() && !part.is_busy; });
  });
}

Result<void> SplitSequence::failure() const {
  const std::lock_guard lock(mutex_);
  if (error_) return forward(*error_);
  return {};
}

SplitSequence::Choice SplitSequence::choose(uint32_t slot, uint32_t pos) {
  Slot& of = slots_[slot];
  of.pos = pos;
  return {.slot = slot, .pos = pos, .generated = ++of.generated, .settings = of.settings};
}

std::shared_ptr<SplitSequence::Step> SplitSequence::make_step(std::span<const uint32_t> decoding,
                                                              std::span<const Piece> pieces) {
  const auto step = std::make_shared<Step>();
  step->tokens.assign(max_sequences(), kernels::kNoToken);
  step->stopped.assign(max_sequences(), false);
  step->decoding.assign(decoding.begin(), decoding.end());
  for (const uint32_t slot : decoding) {
    step->sources.push_back(std::exchange(slots_[slot].chose, step));
    step->choices.push_back(choose(slot, slots_[slot].pos + 1));
  }
  for (const Piece& piece : pieces) {
    step->pieces.push_back({.piece = piece, .tokens = {piece.tokens.begin(), piece.tokens.end()}});
    const uint32_t end = piece.pos + static_cast<uint32_t>(piece.tokens.size());
    if (!piece.sample) continue;
    step->choices.push_back(choose(piece.slot, end));
    slots_[piece.slot].chose = step;
  }
  return step;
}

Result<Ticket> SplitSequence::queue(std::vector<std::shared_ptr<Step>> steps, uint32_t count) {
  DP_CHECK(failure());
  const auto asks = [](const Choice& choice) { return choice.settings->sampling.logprobs != 0; };
  const Ticket ticket{.slot = next_ticket_++ % max_tickets(),
                      .count = count,
                      .has_logprobs = std::ranges::any_of(
                          steps, [&](const auto& step) { return std::ranges::any_of(step->choices, asks); })};
  {
    const std::lock_guard lock(mutex_);
    for (const std::shared_ptr<Step>& step : steps) {
      for (Part& part : parts_) part.queue.push_back({.call = {}, .step = step});
    }
  }
  changed_.notify_all();
  outstanding_.push_back({.ticket = ticket, .steps = std::move(steps)});
  return ticket;
}

Result<Ticket> SplitSequence::step(std::span<const uint32_t> decoding, std::span<const Piece> pieces) {
  if (pieces.empty()) return decode(decoding, {});
  const bool samples = !decoding.empty() || std::ranges::any_of(pieces, &Piece::sample);
  return queue({make_step(decoding, pieces)}, samples ? 1 : 0);
}

// Groups of slots, so that each part has one.
Result<Ticket> SplitSequence::decode(std::span<const uint32_t> decoding, const DecodeSteps&) {
  const size_t count = decoding.size() < kLeastOfGroup * parts_.size() ? 1 : parts_.size();
  std::vector<std::shared_ptr<Step>> steps;
  for (size_t i = 0; i < count; ++i) {
    const size_t first = decoding.size() * i / count, end = decoding.size() * (i + 1) / count;
    steps.push_back(make_step(decoding.subspan(first, end - first), {}));
  }
  return queue(std::move(steps), 1);
}

Task<Result<std::vector<uint32_t>>> SplitSequence::tokens(Ticket ticket) {
  if (outstanding_.empty() || outstanding_.front().ticket.slot != ticket.slot) {
    co_return fail(ErrorKind::kInternal, "Ticket %u is not the oldest.", ticket.slot);
  }
  const Outstanding oldest = std::move(outstanding_.front());
  outstanding_.pop_front();
  std::vector<uint32_t> tokens(ticket.count == 0 ? 0 : max_sequences(), kernels::kNoToken);
  logprobs_.assign(ticket.has_logprobs ? max_sequences() : 0, {});
  for (const std::shared_ptr<Step>& step : oldest.steps) {
    auto running = run_last(step);
    const Result<void> ran = co_await std::move(running);
    if (!ran) give_up(ran.error());
    DP_CO_CHECK(ran);
    for (const Choice& choice : step->choices) {
      const uint32_t token = step->tokens[choice.slot];
      tokens[choice.slot] = token;
      if (token != kernels::kNoToken) slots_[choice.slot].last_token = token;
      if (!step->logprobs.empty()) logprobs_[choice.slot] = step->logprobs[choice.slot];
    }
  }
  co_return tokens;
}

Task<Result<std::vector<kernels::LogProbEntry>>> SplitSequence::logprobs(Ticket) {
  co_return std::exchange(logprobs_, {});
}

}  // namespace doppler::model
