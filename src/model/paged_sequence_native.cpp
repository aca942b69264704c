// The queue of calls to a sequence whose experts are paged; see paged_sequence.h.
#include <algorithm>

#include "model/paged_sequence.h"

namespace doppler::model {

// The ticket's slot is the one that the step will take then.
Ticket PagedSequence::queue(Later later) {
  const auto ahead = static_cast<uint32_t>(std::ranges::count_if(later_, &Later::has_ticket));
  const uint32_t rows = later.ticket.rows;
  later.ticket = one_.next_ticket(later.ticket.count, ahead);
  later.ticket.rows = rows;
  for (const Later& queued : later_) {
    if (queued.kind == Later::Kind::kBegin)
      later.ticket.has_logprobs = later.ticket.count != 0 && queued.settings.sampling.logprobs != 0;
  }
  const Ticket ticket = later.ticket;
  later_.push_back(std::move(later));
  return ticket;
}

Result<void> PagedSequence::begin(uint32_t slot, const GenerationSettings& settings,
                                  std::span<const uint32_t> before) {
  if (later_.empty()) return one_.begin(slot, settings, before);
  DP_CHECK(check(settings));
  queue({.kind = Later::Kind::kBegin, .words = {before.begin(), before.end()}, .settings = settings});
  return {};
}

Result<void> PagedSequence::mask(uint32_t slot, std::span<const uint32_t> allowed) {
  if (later_.empty()) return one_.mask(slot, allowed);
  queue({.kind = Later::Kind::kMask, .words = {allowed.begin(), allowed.end()}});
  return {};
}

Result<Ticket> PagedSequence::step(std::span<const uint32_t> decoding, std::span<const Piece> pieces) {
  if (!decoding.empty() || pieces.size() != 1) {
    return fail(ErrorKind::kInternal, "A step of one sequence has %zu decoding slots and %zu pieces.",
                decoding.size(), pieces.size());
  }
  const Piece& piece = pieces[0];
  return queue({.kind = Later::Kind::kPrompt,
                .words = {piece.tokens.begin(), piece.tokens.end()},
                .piece = piece,
                .ticket = {.count = piece.sample ? 1u : 0u}});
}

// Steps with drafts come when all tickets were collected.
Result<Ticket> PagedSequence::decode(std::span<const uint32_t>, const DecodeSteps& steps) {
  const uint32_t entries = one_.draft_entries({.rows = steps.rows});
  if (entries == 0) return queue({.kind = Later::Kind::kDecode, .ticket = {.count = 1}});
  const SlotDrafts given = steps.given.empty() ? SlotDrafts() : steps.given[0];
  return queue({.kind = Later::Kind::kDecode,
                .words = {given.tokens.begin(), given.tokens.end()},
                .masks = {given.masks.begin(), given.masks.end()},
                .ticket = {.count = entries, .rows = steps.rows}});
}

Task<Result<void>> PagedSequence::run(std::optional<uint32_t> slot) {
  const auto is_asked = [&](const Later& later) { return later.has_ticket() && later.ticket.slot == slot; };
  if (slot && std::ranges::none_of(later_, is_asked)) co_return Result<void>();
  for (bool done = false; !done && !later_.empty();) {
    Later later = std::move(later_.front());
    later_.pop_front();
    done = is_asked(later);
    auto running = run_now(std::move(later));
    DP_CO_CHECK(co_await std::move(running));
  }
  co_return Result<void>();
}

Task<Result<void>> PagedSequence::run_now(Later later) {
  if (later.kind == Later::Kind::kBegin) co_return one_.begin(0, later.settings, later.words);
  if (later.kind == Later::Kind::kMask) co_return one_.mask(0, later.words);
  later.piece.tokens = later.words;
  const SlotDrafts given{.tokens = later.words, .masks = later.masks};
  DP_CO_TRY(const OneSequence::Step step,
            later.kind == Later::Kind::kPrompt
                ? one_.open_prompt(later.piece)
                : one_.open_decode({.rows = later.ticket.rows, .given = {&given, 1}}));
  auto paging = pager_.run(*step.plan, step.rows);
  DP_CO_TRY(const gpu::Plan* const last, co_await std::move(paging));
  DP_CO_CHECK(one_.close(step, *last));
  co_return Result<void>();
}

Task<Result<std::vector<uint32_t>>> PagedSequence::tokens(Ticket ticket) {
  auto running = run(ticket.slot);
  DP_CO_CHECK(co_await std::move(running));
  auto reading = one_.tokens(ticket);
  co_return co_await std::move(reading);
}

Task<Result<std::vector<uint8_t>>> PagedSequence::save(uint32_t count) {
  auto running = run(std::nullopt);
  DP_CO_CHECK(co_await std::move(running));
  auto saving = one_.save(count);
  co_return co_await std::move(saving);
}

Task<Result<void>> PagedSequence::restore(uint32_t count, std::span<const uint8_t> bytes) {
  auto running = run(std::nullopt);
  DP_CO_CHECK(co_await std::move(running));
  auto restoring = one_.restore(count, bytes);
  co_return co_await std::move(restoring);
}

}  // namespace doppler::model
