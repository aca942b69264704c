// Times the commands of a plan, each between timestamps, and sums them up beside their floors: what the profiles of one
// sequence (profile.cpp) and of many (profile_streams.cpp) share.
#pragma once

#include <functional>

#include "bench/plan_costs.h"
#include "bench/profile.h"
#include "gpu/device.h"

namespace doppler::bench {

inline constexpr uint32_t kWallRepetitions = 3;

// Decode steps of a ticket whose wall clock is taken.
uint32_t steps_of(const ProfileSettings& settings);

// Seconds of one decode step: the median of some runs of `tickets`, which are queued ahead as generation does it.
Result<double> step_wall(uint32_t tickets, const std::function<Result<model::Ticket>()>& queue,
                         const std::function<Result<void>(model::Ticket)>& collect);

class PlanTimer {
 public:
  // All outlive the timer.
  PlanTimer(gpu::Device& device, const ProfileSettings& settings, const kernels::Ceilings& ceilings)
      : device_(device), settings_(settings), ceilings_(ceilings) {}

  // `prepare` before each repetition; the step state must be such that the plan can be replayed then.
  Result<PlanProfile> time(const gpu::Plan& plan, const StepShape& shape,
                           const std::function<Result<void>()>& prepare);

 private:
  void add_to_trace(const PlanProfile& profile);

  gpu::Device& device_;
  const ProfileSettings& settings_;
  const kernels::Ceilings& ceilings_;
  uint64_t trace_end_ns_ = 0;
};

// run_profile() for many streams, and for a picture.
Result<std::vector<PlanProfile>> run_stream_profile(Model& model, const ProfileSettings& settings,
                                                    const kernels::Ceilings& ceilings);
Result<std::vector<PlanProfile>> run_image_profile(Model& model, const ProfileSettings& settings,
                                                   const kernels::Ceilings& ceilings);

}  // namespace doppler::bench
