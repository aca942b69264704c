// Where the provider's errors go. Both providers report an error on the thread whose call failed, before that
// call returns, so a Trap around some calls catches exactly their errors, on any thread; whatever no trap
// catches lands in the device's error slot. (Error scopes would do neither: wgpu-native shares them between
// threads.)
#pragma once

#include <webgpu/webgpu.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"

namespace doppler::gpu {

// Catches the first error raised on this thread while it lives. Traps nest; the innermost catches.
class ErrorTrap {
 public:
  ErrorTrap();
  ~ErrorTrap();
  ErrorTrap(const ErrorTrap&) = delete;
  ErrorTrap& operator=(const ErrorTrap&) = delete;

  bool caught() const { return caught_; }
  const std::string& message() const { return message_; }
  // Out of memory, under either provider's way of saying it.
  bool out_of_memory() const;

  static bool deliver(WGPUErrorType type,
                      const std::string& message);  // gives the error to this thread's trap, if there is one

 private:
  ErrorTrap* outer_;
  bool caught_ = false;
  WGPUErrorType type_ = WGPUErrorType_NoError;
  std::string message_;
};

class ErrorSlot {
 public:
  void put(ErrorKind kind, std::string sentence);  // keeps the first
  void lose(std::string sentence);
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  void close() { closing_.store(true); }  // from now on the loss of the device is no error: we close it
  Result<void> take();                    // an error is given once, the loss of the device every time

  // Both take the ErrorSlot as userdata1.
  static void on_uncaptured(WGPUDevice const*, WGPUErrorType type, WGPUStringView message, void* slot, void*);
  static void on_lost(WGPUDevice const*, WGPUDeviceLostReason reason, WGPUStringView message, void* slot,
                      void*);

 private:
  std::mutex mutex_;
  std::optional<Error> first_;
  std::string lost_sentence_;
  std::atomic<bool> lost_ = false;
  std::atomic<bool> closing_ = false;
};

}  // namespace doppler::gpu
