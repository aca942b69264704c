// A model's self test: the logits that it gave when it was converted, kept in an RDRR manifest, and their comparison
// with the logits it gives now. Both run in the exact lane (f32 arithmetic, weights as stored), so that a test made on
// one device may be checked on another.
#pragma once

#include "base/task.h"
#include "formats/rdrr/manifest.h"
#include "model/device_model.h"

namespace doppler::engine {

// The lane a runner must be loaded with, and the context that is enough; RunnerOptions::all_logits too.
inline constexpr char kSelfTestLane[] = "exact";
inline constexpr uint32_t kSelfTestCtxLen = 64;

// The largest logits at three positions after ids that any vocabulary has.
Task<Result<formats::RdrrSelfTest>> make_self_test(model::DeviceModel& runner);

struct SelfTestResult {
  uint32_t compared = 0;  // logits
  float worst = 0;        // largest difference
  float allowed = 0;
  uint32_t position = 0, id = 0;  // where the worst is
  bool passed() const { return worst <= allowed; }
};
// Errors: tokens or ids outside the vocabulary, a context that is too short.
Task<Result<SelfTestResult>> run_self_test(model::DeviceModel& runner, const formats::RdrrSelfTest& test);

}  // namespace doppler::engine
