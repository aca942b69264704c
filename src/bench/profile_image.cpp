// Profiles a model's vision tower: the plan of a tile's patches, then that of its tokens.
#include <algorithm>
#include <chrono>

#include "bench/plan_timer.h"
#include "bench/profile.h"
#include "bench/statistics.h"

namespace doppler::bench {
namespace {

// The time does not depend on what a picture shows. This one is noise.
images::Picture make_picture(images::Size size) {
  images::Picture picture = images::Picture::of(size);
  uint32_t state = 1;
  for (uint8_t& level : picture.rgb) {
    state = state * 1664525u + 1013904223u;
    level = static_cast<uint8_t>(state >> 24);
  }
  return picture;
}

Result<double> wall_of(gpu::Device& device, const ProfileSettings& settings,
                       const std::function<Result<void>()>& run) {
  using WallClock = std::chrono::steady_clock;
  std::vector<double> walls;
  for (uint32_t i = 0; i < settings.warmups + kWallRepetitions; ++i) {
    const auto start = WallClock::now();
    DP_CHECK(run());
    DP_CHECK(gpu::run_to_completion(device, device.idle()));
    if (i >= settings.warmups)
      walls.push_back(std::chrono::duration<double>(WallClock::now() - start).count());
  }
  return median(walls);
}

}  // namespace

Result<std::vector<PlanProfile>> run_image_profile(Model& model, const ProfileSettings& settings,
                                                   const kernels::Ceilings& ceilings) {
  gpu::Device& device = *Model::Impl::of(model).device;
  model::ImageStore* const store = Model::Impl::of(model).loaded->runner->images();
  if (!store) {
    return fail(ErrorKind::kInvalidInput, "%s has no vision tower, so no picture can be profiled.",
                model.info().name.c_str());
  }
  model::ImageEncoder& encoder = store->encoder();
  const images::Picture picture = make_picture({settings.image_width, settings.image_height});
  DP_TRY(const images::PreparedImage image, images::prepare_image(encoder.rules(), picture));
  PlanTimer timer(device, settings, ceilings);
  std::vector<PlanProfile> profiles;
  for (const size_t number : {0, 1}) {
    model::ImageEncoder::TileWork work;
    const auto prepare = [&]() -> Result<void> {
      DP_TRY(work, encoder.prepare(image.tiles.front()));
      return {};
    };
    DP_CHECK(prepare());
    const gpu::Work& timed = work[number];
    DP_TRY(const double wall, wall_of(device, settings, [&]() -> Result<void> {
             DP_CHECK(prepare());
             return device.submit({&timed, 1});
           }));
    DP_TRY(PlanProfile profile, timer.time(*timed.plan, {.rows = timed.rows, .all_sides = true}, prepare));
    profile.wall_seconds = wall;
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

}  // namespace doppler::bench
