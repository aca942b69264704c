#include "kernels/linear/weight_fragments.h"

#include <array>

namespace doppler::kernels {
namespace {

constexpr std::array<WeightFragments, kWeightFormatCount> kFragments = {{
    {.format = WeightFormat::kF32, .weight = "linear/weights/weight_f32"},
    {.format = WeightFormat::kF16, .weight = "linear/weights/weight_f16"},
    {.format = WeightFormat::kBF16, .weight = "linear/weights/weight_bf16"},
    {.format = WeightFormat::kQ8_0, .weight = "linear/weights/weight_q8_0", .dot = "linear/weights/dot_q8_0"},
    {.format = WeightFormat::kQ4_0, .weight = "linear/weights/weight_q4_0", .dot = "linear/weights/dot_q4_0"},
    {.format = WeightFormat::kQ4_K, .weight = "linear/weights/weight_q4_k", .dot = "linear/weights/dot_q4_k"},
    {.format = WeightFormat::kQ5_K, .weight = "linear/weights/weight_q5_k", .dot = "linear/weights/dot_q5_k"},
    {.format = WeightFormat::kQ6_K, .weight = "linear/weights/weight_q6_k", .dot = "linear/weights/dot_q6_k"},
    {.format = WeightFormat::kTileQ4,
     .weight = "linear/weights/weight_tile_q4",
     .dot = "linear/weights/dot_tile_q4",
     .stage = "linear/weights/stage_tile_q4",
     .repack = "linear/repack/repack_to_q4"},
    {.format = WeightFormat::kTileQ5,
     .weight = "linear/weights/weight_tile_q5",
     .dot = "linear/weights/dot_tile_q5",
     .stage = "linear/weights/stage_tile_q5",
     .repack = "linear/repack/repack_to_q5"},
    {.format = WeightFormat::kTileQ6,
     .weight = "linear/weights/weight_tile_q6",
     .dot = "linear/weights/dot_tile_q6",
     .stage = "linear/weights/stage_tile_q6",
     .repack = "linear/repack/repack_to_q6"},
    {.format = WeightFormat::kTileQ8,
     .weight = "linear/weights/weight_tile_q8",
     .dot = "linear/weights/dot_tile_q8",
     .stage = "linear/weights/stage_tile_q8",
     .repack = "linear/repack/repack_to_q8"},
    {.format = WeightFormat::kTileF16,
     .weight = "linear/weights/weight_tile_f16",
     .stage = "linear/weights/stage_tile_f16"},
    {.format = WeightFormat::kTileBF16,
     .weight = "linear/weights/weight_tile_bf16",
     .stage = "linear/weights/stage_tile_bf16"},
}};
static_assert([] {
  for (size_t i = 0; i < kFragments.size(); ++i) {
    if (kFragments[i].format != static_cast<WeightFormat>(i)) return false;
  }
  return true;
}());

}  // namespace

const WeightFragments& weight_fragments(WeightFormat format) {
  return kFragments[static_cast<size_t>(format)];
}

}  // namespace doppler::kernels
