// Steps in two halves: what the host writes first, and the submit with what is read back. Between them others may
// replay parts of the plan (paged_runner.h).
#pragma once

#include <cstdint>
#include <span>

#include "gpu/plan.h"
#include "model/sequence_runner.h"

namespace doppler::model {

struct OpenStep {
  const gpu::Plan* before = nullptr;  // replayed once, before all else; null: nothing
  const gpu::Plan* plan = nullptr;
  uint32_t rows = 1;
  uint32_t times = 1, submits = 1;  // replays of a submit, and submits
  uint32_t last_times = 1;          // replays of the last submit
  Ticket ticket = {};               // as close() issues it
  bool is_prompt = false;
};

// step() and decode() are open() and close().
class HalvedRunner : public SequenceRunner {
 public:
  // Opens a step() if there are pieces, or else a decode().
  virtual Result<OpenStep> open(std::span<const uint32_t> decoding, std::span<const Piece> pieces,
                                const DecodeSteps& steps) = 0;
  virtual Result<Ticket> close(const OpenStep& step) = 0;

  Result<Ticket> step(std::span<const uint32_t> decoding, std::span<const Piece> pieces) final {
    return open_and_close(decoding, pieces, {});
  }
  Result<Ticket> decode(std::span<const uint32_t> decoding, const DecodeSteps& steps) final {
    return open_and_close(decoding, {}, steps);
  }

 private:
  Result<Ticket> open_and_close(std::span<const uint32_t> decoding, std::span<const Piece> pieces,
                                const DecodeSteps& steps) {
    DP_TRY(const OpenStep opened, open(decoding, pieces, steps));
    return close(opened);
  }
};

}  // namespace doppler::model
