// The end of a step whose experts are paged, and the calls that wait for it; see paged_runner.h.
#include "model/paged_runner.h"

namespace doppler::model {

// Makes the call now, or after the step that is open.
Result<void> PagedRunner::in_turn(Call call) {
  if (!opened_) return call();
  later_.push_back(std::move(call));
  return {};
}

// Completes when the caller's turn has come. The caller makes its calls then, before it waits again.
Completion<bool> PagedRunner::turn() {
  Completion<bool> come;
  (void)in_turn([come] {
    come.complete(true);
    return Result<void>();
  });
  return come;
}

Result<void> PagedRunner::begin(uint32_t slot, const GenerationSettings& settings,
                                std::span<const uint32_t> before) {
  DP_CHECK(check(settings));
  return in_turn([this, slot, settings, tokens = std::vector(before.begin(), before.end())] {
    return runner_.begin(slot, settings, tokens);
  });
}

void PagedRunner::end(uint32_t slot) {
  (void)in_turn([this, slot] {
    runner_.end(slot);
    return Result<void>();
  });
}

Result<void> PagedRunner::map(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) {
  return in_turn([this, slot, first, entries = std::vector(blocks.begin(), blocks.end())] {
    return runner_.map(slot, first, entries);
  });
}

Result<void> PagedRunner::copy_block(uint32_t from, uint32_t to) {
  return in_turn([this, from, to] { return runner_.copy_block(from, to); });
}

Result<void> PagedRunner::map_window(uint32_t slot, uint32_t first, std::span<const uint32_t> blocks) {
  return in_turn([this, slot, first, entries = std::vector(blocks.begin(), blocks.end())] {
    return runner_.map_window(slot, first, entries);
  });
}

Result<void> PagedRunner::copy_window_block(uint32_t from, uint32_t to) {
  return in_turn([this, from, to] { return runner_.copy_window_block(from, to); });
}

Result<void> PagedRunner::save_states(uint32_t slot, uint32_t checkpoint) {
  return in_turn([this, slot, checkpoint] { return runner_.save_states(slot, checkpoint); });
}

Result<void> PagedRunner::load_states(uint32_t checkpoint, uint32_t slot) {
  return in_turn([this, checkpoint, slot] { return runner_.load_states(checkpoint, slot); });
}

Result<void> PagedRunner::mask(uint32_t slot, std::span<const uint32_t> allowed) {
  return in_turn(
      [this, slot, row = std::vector(allowed.begin(), allowed.end())] { return runner_.mask(slot, row); });
}

Result<Ticket> PagedRunner::step(std::span<const uint32_t> decoding, std::span<const Piece> pieces) {
  return open(decoding, pieces, {});
}

Result<Ticket> PagedRunner::decode(std::span<const uint32_t> decoding, const DecodeSteps& steps) {
  return open(decoding, {}, {.rows = steps.rows, .given = steps.given});
}

Result<Ticket> PagedRunner::open(std::span<const uint32_t> decoding, std::span<const Piece> pieces,
                                 const DecodeSteps& steps) {
  if (opened_) return fail(ErrorKind::kInternal, "A step was queued after one whose experts are not there.");
  DP_TRY(opened_, runner_.open(decoding, pieces, steps));
  return opened_->ticket;
}

Task<Result<void>> PagedRunner::close() {
  if (!opened_) co_return Result<void>();
  OpenStep step = *opened_;
  auto paging = pager_.run(*step.plan, step.rows, step.before);
  const Result<const gpu::Plan*> last = co_await std::move(paging);
  Result<void> ended;
  if (!last) {
    ended = Unexpected(last.error());
  } else {
    step.before = nullptr;
    step.plan = *last;
    if (const auto closed = runner_.close(step); !closed) ended = Unexpected(closed.error());
  }
  opened_.reset();
  for (const Call& call : std::exchange(later_, {})) {
    if (const Result<void> made = call(); ended) ended = made;
  }
  co_return ended;
}

Task<Result<std::vector<uint32_t>>> PagedRunner::tokens(Ticket ticket) {
  auto closing = close();
  DP_CO_CHECK(co_await std::move(closing));
  auto reading = runner_.tokens(ticket);
  co_return co_await std::move(reading);
}

Task<Result<std::vector<uint8_t>>> PagedRunner::read_block(uint32_t block) {
  co_await turn();
  auto reading = runner_.read_block(block);
  co_return co_await std::move(reading);
}

Task<Result<void>> PagedRunner::write_block(uint32_t block, std::span<const uint8_t> bytes) {
  co_await turn();
  auto writing = runner_.write_block(block, bytes);
  co_return co_await std::move(writing);
}

Task<Result<std::vector<uint8_t>>> PagedRunner::save(uint32_t count) {
  auto closing = close();
  DP_CO_CHECK(co_await std::move(closing));
  auto saving = runner_.save(count);
  co_return co_await std::move(saving);
}

Task<Result<void>> PagedRunner::restore(uint32_t count, std::span<const uint8_t> bytes) {
  auto closing = close();
  DP_CO_CHECK(co_await std::move(closing));
  auto restoring = runner_.restore(count, bytes);
  co_return co_await std::move(restoring);
}

}  // namespace doppler::model
