// First generations of a model, whose text nobody reads: some drivers compile a kernel only when it first runs, for
// seconds, and the first requests would wait for that.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "doppler/scheduler.h"
#include "server/worker.h"

namespace doppler::server {

// The kernels that one request at a time needs: prompts of few and of more tokens, sampled and greedy answers; of a
// model without a scheduler the vector of a text. Blocks until `goes_on` says no or it is done.
Result<void> warm_up(Model& model, Scheduler* scheduler, const std::function<bool()>& goes_on);

// The kernels that more requests at a time need: steps of 2, 4, ... up to `most` sequences, without blocking, while
// nobody asks.
class MoreWarmUps : public std::enable_shared_from_this<MoreWarmUps> {
 public:
  MoreWarmUps(Scheduler scheduler, uint32_t vocab_size, uint32_t most, std::shared_ptr<Worker> worker)
      : scheduler_(std::move(scheduler)), vocab_size_(vocab_size), most_(most), worker_(std::move(worker)) {}
  // On the worker's thread. go_on() begins where pause() ended it.
  void go_on();
  void pause() { streams_.clear(); }

 private:
  void look();

  Scheduler scheduler_;
  const uint32_t vocab_size_, most_;
  const std::shared_ptr<Worker> worker_;
  uint32_t next_ = 2;  // sequences of the steps that are under way, or come next; above most_: all ran
  std::vector<Stream> streams_;
};

}  // namespace doppler::server
