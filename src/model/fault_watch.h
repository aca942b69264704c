// The lane persistent (kernels/persistent) reports faults: each ticket brings a word that says whether its workgroups
// waited in vain. Then its tokens are lost, and the chain of dispatches is used from then on.
#pragma once

#include <functional>
#include <utility>

#include "gpu/device.h"
#include "model/one_sequence.h"

namespace doppler::model {

class FaultWatch final : public TicketWatch {
 public:
  // refuse: the kernel is used no more; false: that was known.
  FaultWatch(gpu::Device& device, const gpu::Buffer& exchange, gpu::ReadbackRing faults,
             std::function<bool()> refuse)
      : device_(device), exchange_(exchange), faults_(std::move(faults)), refuse_(std::move(refuse)) {}

  Result<void> note(uint32_t slot) override;
  Task<Result<void>> check(uint32_t slot) override;
  bool goes_on_without_lost() override { return std::exchange(tokens_lost_, false); }

 private:
  gpu::Device& device_;
  const gpu::Buffer& exchange_;
  gpu::ReadbackRing faults_;
  std::function<bool()> refuse_;
  uint64_t asked_ = 0;        // a bit a ticket: its word is on the way
  bool is_over_ = false;      // the kernel is used no more
  bool tokens_lost_ = false;  // and nobody asked yet
};

}  // namespace doppler::model
