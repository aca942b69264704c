// The first generations of a model, whose text is thrown away. Some drivers compile a kernel only when it first runs,
// which takes seconds. Without these, the first requests would wait for that.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "doppler/scheduler.h"
#include "server/worker.h"

namespace doppler::server {

// Runs the kernels that one request at a time needs, on each device: prompts of few and of more tokens, sampled and
// greedy answers. A model without a scheduler makes the vector of a text. The call blocks until it is done or `goes_on`
// says no.
Result<void> warm_up(Model& model, Scheduler* scheduler, const std::function<bool()>& goes_on);

// Runs the kernels that more requests at a time need, in steps of 2, 4, ... up to `most` sequences of a device. It does
// not block, and runs only while no request waits.
class MoreWarmUps : public std::enable_shared_from_this<MoreWarmUps> {
 public:
  MoreWarmUps(Scheduler scheduler, uint32_t vocab_size, uint32_t most, std::shared_ptr<Worker> worker)
      : scheduler_(std::move(scheduler)),
        vocab_size_(vocab_size),
        devices_(static_cast<uint32_t>(scheduler_.load().devices.size())),
        most_(most),
        worker_(std::move(worker)) {}
  // The worker's thread calls these. go_on() begins where pause() ended.
  void go_on();
  void pause() { streams_.clear(); }

 private:
  void look();

  Scheduler scheduler_;
  const uint32_t vocab_size_, devices_, most_;
  const std::shared_ptr<Worker> worker_;
  uint32_t next_ = 2;  // sequences of the steps that are under way, or come next; above most_: all ran
  std::vector<Stream> streams_;
};

}  // namespace doppler::server
