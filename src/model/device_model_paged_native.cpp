// The parts that DeviceModel makes if experts are paged. Read next: expert_pager.h, paged_runner.h.
#include "model/device_model.h"
#include "model/paged_runner.h"

namespace doppler::model {

Task<Result<void>> DeviceModel::make_pager(const formats::Checkpoint& checkpoint,
                                           std::vector<PagedWeight> weights) {
  const PagingShape shape{.n_experts = config_.moe.n_experts,
                          .n_used = config_.moe.n_used,
                          .n_slots = options_.expert_slots,
                          .rows = step_rows(),
                          .least_rows = least_rows()};
  auto making = ExpertPager::make(device_, checkpoint, std::move(weights), shape, routes_);
  DP_CO_TRY(pager_, co_await std::move(making));
  co_return Result<void>();
}

void DeviceModel::make_paged(HalvedRunner& runner) {
  paged_runner_ = std::make_unique<PagedRunner>(runner, *pager_);
  runner_ = paged_runner_.get();
}

std::function<Task<Result<const gpu::Plan*>>(const gpu::Plan&, uint32_t)> DeviceModel::part_runner() {
  return [this](const gpu::Plan& plan, uint32_t rows) { return pager_->run(plan, rows); };
}

}  // namespace doppler::model
