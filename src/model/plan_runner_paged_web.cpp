// A browser keeps all weights in GPU memory: no mapped file gives them again. Nothing here but the first two is ever called.
#include "model/plan_runner.h"
#include "model/weight_loader.h"

namespace doppler::model {

bool pages_experts() { return false; }
bool has_host_tables() { return false; }

Task<Result<void>> HostTable::prepare() { co_return Result<void>(); }
Result<void> HostTable::write(std::span<const uint32_t>) { return {}; }
Task<Result<kernels::Weight>> WeightLoader::host_matrix(formats::StoredTensor, uint32_t) {
  co_return kernels::Weight{};
}

Task<Result<void>> PlanRunner::make_pager(const formats::Checkpoint&, std::vector<PagedWeight>) {
  co_return Result<void>();
}
Result<Ticket> PlanRunner::queue_later(Later) { return Ticket{}; }
Task<Result<void>> PlanRunner::run_later(std::optional<uint32_t>) { co_return Result<void>(); }
Task<Result<const gpu::Plan*>> PlanRunner::last_part(const gpu::Plan& plan, uint32_t) { co_return &plan; }

}  // namespace doppler::model
