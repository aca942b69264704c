// The parts that PlanRunner makes if experts are paged. Read next: expert_pager.h, paged_sequence.h.
#include "model/paged_sequence.h"
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
  co_return Result<void>();
}

void PlanRunner::make_paged() {
  paged_one_ = std::make_unique<PagedSequence>(*one_, *pager_);
  runner_ = paged_one_.get();
}

std::function<Task<Result<const gpu::Plan*>>(const gpu::Plan&, uint32_t)> PlanRunner::part_runner() {
  return [this](const gpu::Plan& plan, uint32_t rows) { return pager_->run(plan, rows); };
}

}  // namespace doppler::model
