// PlanRunner's steps where experts are paged: what was queued runs when its ticket's tokens are asked for, since a step waits
// for the routes of each layer. Read next: expert_pager.h.
#include <algorithm>

#include "base/log.h"
#include "model/plan_runner.h"

namespace doppler::model {

Task<Result<void>> PlanRunner::make_pager(const formats::Checkpoint& checkpoint,
                                          std::vector<PagedWeight> weights) {
  const PagingShape shape{.n_experts = config_.moe.n_experts,
                          .n_used = config_.moe.n_used,
                          .n_slots = expert_slots_,
                          .chunk = options_.chunk};
  auto making = ExpertPager::make(device_, checkpoint, std::move(weights), shape, routes_);
  DP_CO_TRY(pager_, co_await std::move(making));
  if (options_.policy.allows(kernels::Lane::kPersistent)) {
    log(LogLevel::kWarning,
        "decode_layers.persistent is not used: experts are paged, which it does not stop for.");
  }
  co_return Result<void>();
}

// The ticket's slot is the one that submit() or submit_mark() will take then.
Result<Ticket> PlanRunner::queue_later(Later later) {
  uint32_t slot = next_slot_;
  const GenerationSettings* settings = &settings_;
  for (const Later& queued : later_) {
    if (queued.has_ticket) slot = (slot + 1) % options_.tickets;
    if (queued.kind == Later::Kind::kBegin) settings = &queued.settings;
  }
  later.ticket.slot = slot;
  later.ticket.has_logprobs = later.ticket.count != 0 && settings->sampling.logprobs != 0;
  const Ticket ticket = later.has_ticket ? later.ticket : Ticket{};
  later_.push_back(std::move(later));
  return ticket;
}

Task<Result<void>> PlanRunner::run_later(std::optional<uint32_t> slot) {
  const auto is_asked = [&](const Later& later) { return later.has_ticket && later.ticket.slot == slot; };
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

Task<Result<void>> PlanRunner::run_now(Later later) {
  switch (later.kind) {
    case Later::Kind::kBegin:
      DP_CO_CHECK(begin_at(static_cast<uint32_t>(later.tokens.size())));
      DP_CO_CHECK(set_generation(later.settings, later.tokens));
      break;
    case Later::Kind::kMark:
      DP_CO_CHECK(submit_mark());
      break;
    case Later::Kind::kPrefill: {
      DP_CO_TRY(const gpu::Plan* const chosen, begin_prefill(later.tokens, later.has_ticket));
      DP_CO_TRY(const gpu::Plan* const last, co_await last_part(*chosen, host_state_.rows));
      DP_CO_CHECK(submit(*last, host_state_.rows, 1, later.ticket.count));
      DP_CO_CHECK(end_prefill());
      break;
    }
    case Later::Kind::kDecode: {
      const gpu::Plan& chosen = choice_plans_.of(
          decode_plan(takes_greedy_plan(settings_), ++host_state_.pos), parts_of(settings_));
      note_end();
      if (host_table_) DP_CO_CHECK(host_table_->write({&last_token_, 1}));
      DP_CO_TRY(const gpu::Plan* const last, co_await last_part(chosen, 1));
      DP_CO_CHECK(submit(*last, 1, 1, 1));
      break;
    }
  }
  co_return Result<void>();
}

Task<Result<const gpu::Plan*>> PlanRunner::last_part(const gpu::Plan& plan, uint32_t rows) {
  co_return co_await pager_->run(plan, rows);
}

}  // namespace doppler::model
