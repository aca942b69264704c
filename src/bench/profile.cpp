// Runs the plans: the step state is set by prefilling, wall clock first (normal submits), then the timed
// commands.
#include "bench/profile.h"

#include <algorithm>
#include <chrono>

#include "bench/plan_timer.h"
#include "bench/statistics.h"

namespace doppler::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kProfileSlot = 0;

class Profiler {
 public:
  Profiler(Model& model, const ProfileSettings& settings, const kernels::Ceilings& ceilings)
      : impl_(Model::Impl::of(model)),
        device_(*impl_.device),
        runner_(*impl_.loaded->runner),
        steps_(*runner_.runner()),
        settings_(settings),
        timer_(device_, settings, ceilings) {}

  Result<PlanProfile> decode() {
    const gpu::Plan& plan = runner_.decode_plan(/*greedy=*/true, settings_.depth + 1);
    DP_CHECK(fill_cache());
    DP_TRY(const double wall, decode_wall());
    DP_CHECK(fill_cache());  // back to the depth asked for
    DP_TRY(PlanProfile profile,
           timer_.time(plan, {.rows = 1, .depth = settings_.depth}, [] { return Result<void>(); }));
    profile.wall_seconds = wall;
    return profile;
  }

  Result<PlanProfile> prefill() {
    const uint32_t rows = std::min(settings_.prompt, runner_.chunk());
    const gpu::Plan& plan = runner_.prefill_plan(rows);
    const std::vector<uint32_t> tokens = make_prompt(rows, impl_.info.vocab_size, 1);
    const auto prepare = [&]() -> Result<void> {
      DP_CHECK(begin());
      DP_CHECK(runner_.one()->write_prompt({.tokens = tokens}));
      return {};
    };
    std::vector<double> walls;
    for (uint32_t i = 0; i < settings_.warmups + kWallRepetitions; ++i) {
      DP_CHECK(begin());
      const auto start = Clock::now();
      const model::Piece piece{.tokens = tokens, .sample = true};
      DP_TRY(const model::Ticket ticket, steps_.step({}, {&piece, 1}));
      DP_CHECK(collect(ticket));
      if (i >= settings_.warmups)
        walls.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    DP_TRY(PlanProfile profile, timer_.time(plan, {.rows = rows}, prepare));
    profile.wall_seconds = median(walls);
    return profile;
  }

 private:
  Result<void> begin() {
    model::GenerationSettings generation;
    generation.greedy = true;
    generation.ignore_stop = true;
    generation.max_tokens = runner_.ctx_len();
    return steps_.begin(kProfileSlot, generation, {});
  }

  Result<void> collect(model::Ticket ticket) {
    auto reading = steps_.tokens(ticket);
    DP_TRY([[maybe_unused]] const std::vector<uint32_t> tokens,
           gpu::run_to_completion(device_, std::move(reading)));
    return {};
  }

  // Puts `depth` tokens into the cache and samples from the last one, so that a decode step can follow.
  Result<void> fill_cache() {
    DP_CHECK(begin());
    const std::vector<uint32_t> tokens = make_prompt(settings_.depth, impl_.info.vocab_size, 0);
    for (size_t at = 0; at < tokens.size();) {
      const size_t count = std::min<size_t>(runner_.chunk(), tokens.size() - at);
      const bool is_last = at + count == tokens.size();
      const model::Piece piece{.pos = static_cast<uint32_t>(at),
                               .tokens = std::span(tokens).subspan(at, count),
                               .sample = is_last,
                               .next = is_last ? std::nullopt : std::optional(tokens[at + count])};
      DP_TRY(const model::Ticket ticket, steps_.step({}, {&piece, 1}));
      DP_CHECK(collect(ticket));
      at += count;
    }
    return {};
  }

  Result<double> decode_wall() {
    return step_wall(
        std::min(model::kTickets, steps_.max_tickets()),
        [&] {
          return steps_.decode({&kProfileSlot, 1}, {.steps = steps_of(settings_),
                                                    .submits = settings_.cadence.readback_interval});
        },
        [&](model::Ticket ticket) { return collect(ticket); });
  }

  Model::Impl& impl_;
  gpu::Device& device_;
  model::DeviceModel& runner_;
  model::SequenceRunner& steps_;
  const ProfileSettings& settings_;
  PlanTimer timer_;
};

}  // namespace

uint64_t positions_needed(const ProfileSettings& settings) {
  if (settings.image_width != 0) return 1;
  const uint64_t decoded = uint64_t{steps_of(settings)} * settings.cadence.readback_interval *
                               model::kTickets * (kWallRepetitions + 1) +
                           settings.warmups + settings.repetitions;
  return std::max<uint64_t>(settings.prompt, settings.depth == 0 ? 0 : settings.depth + decoded) + 1;
}

uint32_t sequences_needed(const ProfileSettings& settings) {
  return settings.streams.empty() ? 1 : std::max(2u, std::ranges::max(settings.streams));
}

Result<std::vector<PlanProfile>> run_profile(Model& model, const ProfileSettings& settings,
                                             const kernels::Ceilings& ceilings) {
  if (positions_needed(settings) > model.info().ctx_len) {
    return fail(ErrorKind::kInvalidInput, "This profile needs %llu positions; the context holds %u (--ctx).",
                static_cast<unsigned long long>(positions_needed(settings)), model.info().ctx_len);
  }
  if (!settings.streams.empty()) return run_stream_profile(model, settings, ceilings);
  if (settings.image_width != 0) return run_image_profile(model, settings, ceilings);
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
