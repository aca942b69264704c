// Runs the plans: the step state is set by prefilling, wall clock first (normal submits), then the timed
// commands.
#include "bench/profile.h"

#include <algorithm>
#include <chrono>

#include "base/trace.h"
#include "bench/plan_costs.h"
#include "bench/statistics.h"

namespace doppler::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kWallRepetitions = 3;

uint32_t steps_of(const ProfileSettings& settings) {
  return settings.cadence.batch == 0 ? model::kDefaultBatch : settings.cadence.batch;
}

class Profiler {
 public:
  Profiler(Model& model, const ProfileSettings& settings, const kernels::Ceilings& ceilings)
      : impl_(model.impl()),
        device_(*impl_.device),
        runner_(*impl_.loaded->runner),
        settings_(settings),
        ceilings_(ceilings) {}

  Result<PlanProfile> decode() {
    const gpu::Plan& plan = runner_.decode_plan(/*greedy=*/true, settings_.depth + 1);
    DP_CHECK(fill_cache());
    DP_TRY(const double wall, decode_wall());
    DP_CHECK(fill_cache());  // back to the depth asked for
    DP_TRY(PlanProfile profile, time_plan(plan, 1, settings_.depth, [] { return Result<void>(); }));
    profile.wall_seconds = wall;
    return profile;
  }

  Result<PlanProfile> prefill() {
    const uint32_t rows = std::min(settings_.prompt, runner_.chunk());
    const gpu::Plan& plan = runner_.prefill_plan(rows);
    const std::vector<uint32_t> tokens = make_prompt(rows, impl_.info.vocab_size, 1);
    const auto prepare = [&]() -> Result<void> {
      DP_CHECK(begin());
      return runner_.prepare_prefill(tokens);
    };
    std::vector<double> walls;
    for (uint32_t i = 0; i < settings_.warmups + kWallRepetitions; ++i) {
      DP_CHECK(begin());
      const auto start = Clock::now();
      DP_TRY(const model::Ticket ticket, runner_.prefill(tokens, /*sample=*/true));
      DP_CHECK(collect(ticket));
      if (i >= settings_.warmups)
        walls.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    DP_TRY(PlanProfile profile, time_plan(plan, rows, 0, prepare));
    profile.wall_seconds = median(walls);
    return profile;
  }

 private:
  Result<void> begin() {
    model::GenerationSettings generation;
    generation.greedy = true;
    generation.ignore_stop = true;
    generation.max_tokens = runner_.ctx_len();
    impl_.cached_tokens.clear();
    return runner_.begin(generation, {});
  }

  Result<void> collect(model::Ticket ticket) {
    auto reading = runner_.tokens(ticket);
    DP_TRY([[maybe_unused]] const std::vector<uint32_t> tokens,
           gpu::run_to_completion(device_, std::move(reading)));
    return {};
  }

  // `depth` tokens in the cache, the last of them sampled from, so that a decode step can follow.
  Result<void> fill_cache() {
    DP_CHECK(begin());
    const std::vector<uint32_t> tokens = make_prompt(settings_.depth, impl_.info.vocab_size, 0);
    for (size_t at = 0; at < tokens.size();) {
      const size_t count = std::min<size_t>(runner_.chunk(), tokens.size() - at);
      const bool last = at + count == tokens.size();
      DP_TRY(const model::Ticket ticket, runner_.prefill(std::span(tokens).subspan(at, count), last));
      if (last) DP_CHECK(collect(ticket));
      at += count;
    }
    return {};
  }

  // Of one step, queued ahead as generation does it.
  Result<double> decode_wall() {
    std::vector<double> walls;
    for (uint32_t i = 0; i <= kWallRepetitions; ++i) {
      const auto start = Clock::now();
      std::vector<model::Ticket> tickets;
      uint32_t steps = 0;
      for (uint32_t t = 0; t < model::kTickets && t < runner_.max_tickets(); ++t) {
        DP_TRY(const model::Ticket ticket,
               runner_.decode(steps_of(settings_), settings_.cadence.readback_interval));
        tickets.push_back(ticket);
        steps += ticket.count;
      }
      for (const model::Ticket& ticket : tickets) DP_CHECK(collect(ticket));
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (i > 0) walls.push_back(seconds / steps);  // the first warms up
    }
    return median(walls);
  }

  template <class Prepare>
  Result<PlanProfile> time_plan(const gpu::Plan& plan, uint32_t rows, uint32_t depth, Prepare prepare) {
    std::vector<std::vector<double>> samples(plan.entries.size());
    for (uint32_t i = 0; i < settings_.warmups + settings_.repetitions; ++i) {
      const bool counted = i >= settings_.warmups;
      if (settings_.progress) settings_.progress(plan.name, counted ? i - settings_.warmups + 1 : 0);
      DP_CHECK(prepare());
      auto timing = device_.time_commands(plan, rows);
      DP_TRY(const std::vector<uint64_t> times, gpu::run_to_completion(device_, std::move(timing)));
      for (size_t c = 0; counted && c < times.size(); ++c)
        samples[c].push_back(static_cast<double>(times[c]) / 1e9);
    }
    std::vector<CommandTime> commands;
    for (size_t i = 0; i < plan.entries.size(); ++i) {
      const gpu::PlanEntry& entry = plan.entries[i];
      const Cost cost = cost_of(plan, i, {.rows = rows, .depth = depth});
      commands.push_back({.kernel = entry.name,
                          .op_label = entry.op_label,
                          .seconds = median(samples[i]),
                          .bytes = cost.bytes,
                          .operations = cost.operations});
    }
    PlanProfile profile = summarise(plan.name, std::move(commands), ceilings_);
    profile.rows = rows;
    profile.depth = depth;
    profile.repetitions = settings_.repetitions;
    add_to_trace(profile);
    return profile;
  }

  // The commands end to end on the trace's GPU track, each with its median, from now on on the host's clock.
  void add_to_trace(const PlanProfile& profile) {
    const auto now = static_cast<uint64_t>(Clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
    trace_end_ns_ = std::max(trace_end_ns_, now);
    for (const CommandTime& command : profile.commands) {
      const auto duration = static_cast<uint64_t>(command.seconds * 1e9);
      trace_gpu_span(command.kernel, command.op_label, trace_end_ns_, duration);
      trace_end_ns_ += duration;
    }
  }

  Model::Impl& impl_;
  gpu::Device& device_;
  model::PlanRunner& runner_;
  const ProfileSettings& settings_;
  const kernels::Ceilings& ceilings_;
  uint64_t trace_end_ns_ = 0;
};

}  // namespace

uint64_t positions_needed(const ProfileSettings& settings) {
  const uint64_t decoded = uint64_t{steps_of(settings)} * settings.cadence.readback_interval *
                               model::kTickets * (kWallRepetitions + 1) +
                           settings.warmups + settings.repetitions;
  return std::max<uint64_t>(settings.prompt, settings.depth == 0 ? 0 : settings.depth + decoded) + 1;
}

Result<std::vector<PlanProfile>> run_profile(Model& model, const ProfileSettings& settings,
                                             const kernels::Ceilings& ceilings) {
  if (positions_needed(settings) > model.info().ctx_len) {
    return fail(ErrorKind::kInvalidInput, "This profile needs %llu positions; the context holds %u (--ctx).",
                static_cast<unsigned long long>(positions_needed(settings)), model.info().ctx_len);
  }
  Profiler profiler(model, settings, ceilings);
  std::vector<PlanProfile> profiles;
  if (settings.depth != 0) {
    DP_TRY(PlanProfile profile, profiler.decode());
    profiles.push_back(std::move(profile));
  }
  if (settings.prompt != 0) {
    DP_TRY(PlanProfile profile, profiler.prefill());
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

}  // namespace doppler::bench
