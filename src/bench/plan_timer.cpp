#include "bench/plan_timer.h"

#include <algorithm>
#include <chrono>

#include "base/trace.h"
#include "bench/statistics.h"

namespace doppler::bench {

uint32_t steps_of(const ProfileSettings& settings) {
  return settings.cadence.batch == 0 ? model::kDefaultBatch : settings.cadence.batch;
}

Result<double> step_wall(uint32_t tickets, const std::function<Result<model::Ticket>()>& queue,
                         const std::function<Result<void>(model::Ticket)>& collect) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> walls;
  for (uint32_t i = 0; i <= kWallRepetitions; ++i) {
    const auto start = Clock::now();
    std::vector<model::Ticket> queued;
    uint32_t steps = 0;
    for (uint32_t t = 0; t < tickets; ++t) {
      DP_TRY(const model::Ticket ticket, queue());
      queued.push_back(ticket);
      steps += ticket.count;
    }
    for (const model::Ticket& ticket : queued) DP_CHECK(collect(ticket));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (i > 0) walls.push_back(seconds / steps);  // the first warms up
  }
  return median(walls);
}

Result<PlanProfile> PlanTimer::time(const gpu::Plan& plan, const StepShape& shape,
                                    const std::function<Result<void>()>& prepare) {
  std::vector<std::vector<double>> samples(plan.entries.size());
  for (uint32_t i = 0; i < settings_.warmups + settings_.repetitions; ++i) {
    const bool counted = i >= settings_.warmups;
    if (settings_.progress) settings_.progress(plan.name, counted ? i - settings_.warmups + 1 : 0);
    DP_CHECK(prepare());
    auto timing = device_.time_commands(plan, shape.rows);
    DP_TRY(const std::vector<uint64_t> times, gpu::run_to_completion(device_, std::move(timing)));
    for (size_t c = 0; counted && c < times.size(); ++c)
      samples[c].push_back(static_cast<double>(times[c]) / 1e9);
  }
  std::vector<CommandTime> commands;
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    const gpu::PlanEntry& entry = plan.entries[i];
    const Cost cost = cost_of(plan, i, shape);
    commands.push_back({.kernel = entry.name,
                        .op_label = entry.op_label,
                        .seconds = median(samples[i]),
                        .bytes = cost.bytes,
                        .operations = cost.operations});
  }
  PlanProfile profile = summarise(plan.name, std::move(commands), ceilings_);
  profile.rows = shape.rows;
  profile.depth = shape.depth;
  profile.repetitions = settings_.repetitions;
  add_to_trace(profile);
  return profile;
}

// The commands end to end on the trace's GPU track, each with its median, from now on on the host's clock.
void PlanTimer::add_to_trace(const PlanProfile& profile) {
  using Clock = std::chrono::steady_clock;
  const auto now = static_cast<uint64_t>(Clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
  trace_end_ns_ = std::max(trace_end_ns_, now);
  for (const CommandTime& command : profile.commands) {
    const auto duration = static_cast<uint64_t>(command.seconds * 1e9);
    trace_gpu_span(command.kernel, command.op_label, trace_end_ns_, duration);
    trace_end_ns_ += duration;
  }
}

}  // namespace doppler::bench
