#include "images/prepared_image.h"

#include <algorithm>

namespace doppler::images {
namespace {

void put_number(std::vector<uint8_t>& out, uint32_t number) {
  for (const int shift : {0, 8, 16, 24}) out.push_back(static_cast<uint8_t>(number >> shift));
}

}  // namespace

Levels levels_of(const ImageRules& rules, ValuesOf values) {
  Levels out{};
  for (uint32_t c = 0; c < kChannels; ++c) {
    const float mean = static_cast<float>(rules.mean[c]) * 255.0f;
    const float deviation = static_cast<float>(rules.deviation[c]) * 255.0f;
    for (uint32_t x = 0; x < out[c].size(); ++x) out[c][x] = (static_cast<float>(x) - mean) / deviation;
  }
  if (values == ValuesOf::kProcessor || !rules.family->is_recentred) return out;
  for (auto& channel : out) {
    for (float& value : channel) value = 2 * value - 1;
  }
  return out;
}

std::vector<uint8_t> PreparedImage::key_bytes() const {
  std::vector<uint8_t> out;
  put_number(out, shape.columns);
  put_number(out, shape.rows);
  for (const Picture& tile : tiles) {
    put_number(out, tile.size.width);
    put_number(out, tile.size.height);
    out.insert(out.end(), tile.rgb.begin(), tile.rgb.end());
  }
  return out;
}

namespace {

Result<ImageShape> shape_of_plan(const ImageRules& rules, const TilePlan& plan) {
  ImageShape out{.tiles = plan.tile_sizes(), .columns = plan.columns, .rows = plan.rows};
  uint64_t tokens = 0;
  for (const Size& size : out.tiles) tokens += rules.tokens(size);
  if (tokens == 0 || tokens > kMostTokens) {
    return fail(ErrorKind::kInvalidInput, "A picture makes %llu tokens; allowed is 1 to %u.",
                static_cast<unsigned long long>(tokens), kMostTokens);
  }
  out.tokens = static_cast<uint32_t>(tokens);
  return out;
}

}  // namespace

Result<ImageShape> shape_of(const ImageRules& rules, Size picture) {
  if (picture.pixels() == 0) return fail(ErrorKind::kInvalidInput, "A picture has no pixels.");
  DP_TRY(const TilePlan plan, rules.family->plan(rules, picture));
  return shape_of_plan(rules, plan);
}

Result<PreparedImage> prepare_image(const ImageRules& rules, const Picture& picture) {
  if (picture.size.pixels() == 0 || picture.rgb.size() != picture.size.pixels() * kChannels) {
    return fail(ErrorKind::kInvalidInput, "A picture of %u x %u pixels has %zu bytes.", picture.size.width,
                picture.size.height, picture.rgb.size());
  }
  DP_TRY(const TilePlan plan, rules.family->plan(rules, picture.size));
  PreparedImage out;
  DP_TRY(out.shape, shape_of_plan(rules, plan));
  std::vector<Picture> made(plan.stages.size());
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const Stage& stage = plan.stages[i];
    const Picture& source = stage.source == Stage::kPicture ? picture : made[stage.source];
    const bool is_whole = stage.part.size == source.size;
    made[i] = is_whole ? resize(source, stage.size, rules.resize)
                       : resize(crop(source, stage.part), stage.size, rules.resize);
  }
  for (size_t i = 0; i < made.size(); ++i) {
    if (plan.stages[i].is_tile) out.tiles.push_back(std::move(made[i]));
  }
  return out;
}

std::vector<PatchPlace> patch_places(const ImageRules& rules, Size tile) {
  const uint32_t rows = tile.height / rules.patch, columns = tile.width / rules.patch, block = rules.block;
  std::vector<PatchPlace> places;
  places.reserve(size_t{rows} * columns);
  for (uint32_t top = 0; top + block <= rows; top += block) {
    for (uint32_t left = 0; left + block <= columns; left += block) {
      for (uint32_t i = 0; i < block * block; ++i) places.push_back({top + i / block, left + i % block});
    }
  }
  return places;
}

namespace {

void write_patches(const ImageRules& rules, const Picture& tile, const Levels& levels, std::span<float> out) {
  const uint32_t edge = rules.patch;
  const bool is_last = rules.family->values == PatchValues::kChannelsLast;
  float* to = out.data();
  for (const PatchPlace& place : patch_places(rules, tile.size)) {
    for (uint32_t c = 0; c < (is_last ? 1 : kChannels); ++c) {
      for (uint32_t copy = 0; copy < rules.copies; ++copy) {
        for (uint32_t y = 0; y < edge; ++y) {
          const uint8_t* from = tile.row(place.row * edge + y) + size_t{place.column} * edge * kChannels;
          for (uint32_t x = 0; x < edge; ++x, from += kChannels) {
            if (!is_last) {
              *to++ = levels[c][from[c]];
              continue;
            }
            for (uint32_t channel = 0; channel < kChannels; ++channel) {
              *to++ = levels[channel][from[channel]];
            }
          }
        }
      }
    }
  }
}

// [3, height, width]
std::vector<float> planes(const ImageRules& rules, const Picture& tile) {
  const Levels levels = levels_of(rules, ValuesOf::kProcessor);
  std::vector<float> out;
  out.reserve(tile.rgb.size());
  for (uint32_t c = 0; c < kChannels; ++c) {
    for (size_t i = c; i < tile.rgb.size(); i += kChannels) out.push_back(levels[c][tile.rgb[i]]);
  }
  return out;
}

}  // namespace

std::vector<float> processor_values(const ImageRules& rules, const Picture& tile) {
  const bool is_last = rules.family->values == PatchValues::kChannelsLast;
  if (rules.copies == 1 && !is_last) return planes(rules, tile);
  const std::vector<PatchPlace> places = patch_places(rules, tile.size);
  const size_t n = rules.patch_values();
  std::vector<float> patches(places.size() * n);
  write_patches(rules, tile, levels_of(rules, ValuesOf::kProcessor), patches);
  if (!is_last) return patches;
  std::vector<float> out(patches.size());
  const uint32_t columns = tile.size.width / rules.patch;
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t to = (size_t{places[i].row} * columns + places[i].column) * n;
    std::copy_n(patches.begin() + static_cast<ptrdiff_t>(i * n), n, out.begin() + static_cast<ptrdiff_t>(to));
  }
  return out;
}

}  // namespace doppler::images
