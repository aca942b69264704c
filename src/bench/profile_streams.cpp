// Profiles the decode step of many streams: each has a prompt of its own in blocks of its own, evaluated before. It
// talks to the plans without a scheduler, since every step must be the same.
#include <algorithm>

#include "bench/plan_timer.h"
#include "bench/profile.h"
#include "bench/statistics.h"

namespace doppler::bench {
namespace {

class StreamProfiler {
 public:
  StreamProfiler(Model& model, const ProfileSettings& settings, const kernels::Ceilings& ceilings)
      : device_(*Model::Impl::of(model).device),
        plans_(*Model::Impl::of(model).loaded->runner->sequences()),
        vocab_size_(Model::Impl::of(model).info.vocab_size),
        settings_(settings),
        timer_(device_, settings, ceilings) {}

  Result<PlanProfile> decode(uint32_t streams) {
    slots_.clear();
    for (uint32_t slot = 0; slot < streams; ++slot) slots_.push_back(slot);
    DP_CHECK(fill_cache());
    DP_TRY(const double wall, decode_wall());
    DP_CHECK(fill_cache());                                         // back to the depth asked for
    DP_TRY(const model::Ticket ticket, plans_.decode(slots_, {}));  // it also arranges the step that follows
    DP_CHECK(collect(ticket));
    const StepShape shape{.rows = streams, .depth = settings_.depth, .each_alone = true};
    DP_TRY(PlanProfile profile, timer_.time(plans_.decode_plan(/*greedy=*/true, streams, settings_.depth + 1),
                                            shape, [] { return Result<void>(); }));
    profile.wall_seconds = wall;
    return profile;
  }

 private:
  Result<void> collect(model::Ticket ticket) {
    auto reading = plans_.tokens(ticket);
    DP_TRY([[maybe_unused]] const std::vector<uint32_t> tokens,
           gpu::run_to_completion(device_, std::move(reading)));
    return {};
  }

  Result<void> fill_cache() {
    for (const uint32_t slot : slots_) DP_CHECK(fill_slot(slot));
    return {};
  }

  Result<void> fill_slot(uint32_t slot) {
    model::GenerationSettings generation;
    generation.greedy = true;
    generation.ignore_stop = true;
    generation.max_tokens = plans_.ctx_len();
    DP_CHECK(plans_.begin(slot, generation, {}));
    const uint32_t of_context = (plans_.ctx_len() + plans_.block_len() - 1) / plans_.block_len();
    const uint32_t each = std::min(of_context, plans_.block_count() / plans_.max_sequences());
    std::vector<uint32_t> blocks;
    for (uint32_t i = 0; i < each; ++i) blocks.push_back(slot * each + i);
    DP_CHECK(plans_.map(slot, 0, blocks));
    const std::vector<uint32_t> tokens = make_prompt(settings_.depth, vocab_size_, slot);
    for (size_t at = 0; at < tokens.size();) {
      const size_t count = std::min<size_t>(plans_.max_rows() - plans_.max_sequences(), tokens.size() - at);
      const model::Piece piece{.slot = slot,
                               .pos = static_cast<uint32_t>(at),
                               .tokens = std::span(tokens).subspan(at, count),
                               .sample = at + count == tokens.size()};
      DP_TRY(const model::Ticket ticket, plans_.step({}, {&piece, 1}));
      DP_CHECK(collect(ticket));
      at += count;
    }
    return {};
  }

  Result<double> decode_wall() {
    return step_wall(
        std::min(model::kTickets, plans_.max_tickets()),
        [&] { return plans_.decode(slots_, {.steps = steps_of(settings_)}); },
        [&](model::Ticket ticket) { return collect(ticket); });
  }

  gpu::Device& device_;
  model::SequencePlans& plans_;
  uint32_t vocab_size_;
  const ProfileSettings& settings_;
  PlanTimer timer_;
  std::vector<uint32_t> slots_;
};

}  // namespace

Result<std::vector<PlanProfile>> run_stream_profile(Model& model, const ProfileSettings& settings,
                                                    const kernels::Ceilings& ceilings) {
  StreamProfiler profiler(model, settings, ceilings);
  std::vector<PlanProfile> profiles;
  for (const uint32_t streams : settings.streams) {
    DP_TRY(PlanProfile profile, profiler.decode(streams));
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

}  // namespace doppler::bench
