// A browser keeps all weights in GPU memory: no mapped file gives them again. Nothing here but the first two is ever
// called.
#include "model/device_model.h"
#include "model/weight_loader.h"

namespace doppler::model {

bool pages_experts() { return false; }
bool has_host_tables() { return false; }

Task<Result<void>> HostTable::prepare() { co_return Result<void>(); }
Result<void> HostTable::write(std::span<const uint32_t>) { return {}; }
Task<Result<kernels::Weight>> WeightLoader::host_matrix(formats::StoredTensor, uint32_t) {
  co_return kernels::Weight{};
}

Task<Result<void>> DeviceModel::make_pager(const formats::Checkpoint&, std::vector<PagedWeight>) {
  co_return Result<void>();
}
void DeviceModel::make_paged(HalvedRunner&) {}
std::function<Task<Result<const gpu::Plan*>>(const gpu::Plan&, uint32_t)> DeviceModel::part_runner() {
  return {};
}

}  // namespace doppler::model
