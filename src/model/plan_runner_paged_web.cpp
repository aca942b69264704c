// A browser keeps all experts in GPU memory: no mapped file gives them again. Nothing here is ever called.
#include "model/plan_runner.h"

namespace doppler::model {

bool pages_experts() { return false; }

Task<Result<void>> PlanRunner::make_pager(const formats::Checkpoint&, std::vector<PagedWeight>) {
  co_return Result<void>();
}
Result<Ticket> PlanRunner::queue_later(Later) { return Ticket{}; }
Task<Result<void>> PlanRunner::run_later(std::optional<uint32_t>) { co_return Result<void>(); }
Task<Result<const gpu::Plan*>> PlanRunner::last_part(const gpu::Plan& plan, uint32_t) { co_return &plan; }

}  // namespace doppler::model
