// WebAssembly has no lane persistent: its kernel and the code around it are 21 KB of the module with gzip, and
// workgroups that wait for one another can stop a browser's GPU process. A user who asks for it gets a message. The
// other functions are never called.
#include "base/log.h"
#include "model/device_model.h"

namespace doppler::model {

Task<Result<void>> DeviceModel::make_exchange(gpu::PlanBuilder&) {
  log(LogLevel::kWarning,
      "decode_layers.persistent is not used: WebAssembly does not have it. Decoding goes by the chain of "
      "dispatches.");
  persistent_refused_ = true;
  co_return Result<void>();
}

Task<Result<void>> DeviceModel::confirm_persistent() { co_return Result<void>(); }
std::unique_ptr<TicketWatch> DeviceModel::make_watch() { return nullptr; }

}  // namespace doppler::model
