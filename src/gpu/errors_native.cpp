// Traps and the error slot; see errors_native.h.
#include "gpu/errors_native.h"

#include "base/log.h"
#include "gpu/provider_native.h"

namespace doppler::gpu {
namespace {

thread_local ErrorTrap* innermost_trap = nullptr;

}  // namespace

ErrorTrap::ErrorTrap() : outer_(innermost_trap) { innermost_trap = this; }
ErrorTrap::~ErrorTrap() { innermost_trap = outer_; }

bool ErrorTrap::out_of_memory() const {
  // wgpu-native reports it as a validation error with this text.
  return caught_ &&
         (type_ == WGPUErrorType_OutOfMemory || message_.find("Not enough memory") != std::string::npos);
}

bool ErrorTrap::deliver(WGPUErrorType type, const std::string& message) {
  ErrorTrap* trap = innermost_trap;
  if (!trap) return false;
  if (!trap->caught_) {
    trap->caught_ = true;
    trap->type_ = type;
    trap->message_ = message;
  }
  return true;
}

void ErrorSlot::put(ErrorKind kind, std::string sentence) {
  log(LogLevel::kDebug, "GPU error: %s", sentence.c_str());
  const std::lock_guard lock(mutex_);
  if (!first_) first_.emplace(kind, std::move(sentence));
}

void ErrorSlot::lose(std::string sentence) {
  const std::lock_guard lock(mutex_);
  if (lost_.load()) return;
  lost_sentence_ = std::move(sentence);
  lost_.store(true, std::memory_order_release);
}

Result<void> ErrorSlot::take() {
  const std::lock_guard lock(mutex_);
  if (lost_.load()) return fail(ErrorKind::kDevice, "%s", lost_sentence_.c_str());
  if (!first_) return {};
  Error error = std::move(*first_);
  first_.reset();
  return forward(std::move(error));
}

void ErrorSlot::on_uncaptured(WGPUDevice const*, WGPUErrorType type, WGPUStringView message, void* slot,
                              void*) {
  const std::string text = from_view(message);
  if (ErrorTrap::deliver(type, text)) return;
  const auto kind = type == WGPUErrorType_OutOfMemory ? ErrorKind::kOutOfMemory : ErrorKind::kDevice;
  static_cast<ErrorSlot*>(slot)->put(kind, "The GPU provider reported an error: " + text);
}

void ErrorSlot::on_lost(WGPUDevice const*, WGPUDeviceLostReason reason, WGPUStringView message, void* slot,
                        void*) {
  auto* self = static_cast<ErrorSlot*>(slot);
  if (self->closing_.load() || reason == WGPUDeviceLostReason_FailedCreation ||
      reason == WGPUDeviceLostReason_CallbackCancelled) {
    return;
  }
  self->lose("The GPU device was lost (" + from_view(message) + "). Open it again to go on.");
}

}  // namespace doppler::gpu
