// The table of vision towers, and what the host computes for their plans: families.h, TowerGraphs.
#include <algorithm>
#include <cmath>

#include "families/family.h"
#include "families/towers/position_taps.h"

namespace doppler::families {
namespace {

struct Tower {
  std::string_view name;  // as formats/architectures/towers names it
  void (*build_patches)(Builder& b);
  void (*build_tokens)(Builder& b);
  uint32_t taps_each = 0;
  void (*add_taps)(const PositionTable& table, PatchPlace place, std::vector<Tap>& taps) = nullptr;
  bool alternates = false;  // frequencies of rows and columns
};
constexpr Tower kTowers[] = {
    {"qwen3_vl_tower", build_qwen3_vl_patches, build_qwen3_vl_tokens, kBilinearTaps, bilinear_corner_taps},
    {"qwen2_5_vl_tower", build_qwen2_5_vl_patches, build_qwen2_5_vl_tokens},
    {"gemma3_tower", build_siglip_patches, build_gemma3_tokens, kOwnTap, own_tap},
    {.name = "pixtral_tower",
     .build_patches = build_pixtral_patches,
     .build_tokens = build_pixtral_tokens,
     .alternates = true},
    {.name = "mistral3_tower",
     .build_patches = build_mistral3_patches,
     .build_tokens = build_mistral3_tokens,
     .alternates = true},
    {"glm4v_tower", build_glm4v_patches, build_glm4v_tokens, kBicubicTaps, bicubic_taps},
    {"gemma4_tower", build_gemma4_patches, build_gemma4_tokens, kAxisTaps, axis_taps},
    {"paligemma_tower", build_siglip_patches, build_linear_tokens, kOwnTap, own_tap},
    {"clip_tower", build_clip_patches, build_pixtral_tokens, kClassTaps, class_tap},
    {"internvl_tower", build_internvl_patches, build_norm_mlp_tokens, kClassTaps, class_tap},
    {"idefics3_tower", build_siglip_patches, build_linear_tokens, kOwnTap, own_tap},
    {"lfm2_vl_tower", build_siglip_patches, build_norm_mlp_tokens, kAntialiasedTaps, antialiased_taps},
};

const Tower& tower_of(const formats::ModelConfig& config) {
  const auto* found = std::ranges::find(kTowers, config.family, &Tower::name);
  return found == std::end(kTowers) ? kTowers[0] : *found;  // read_tower() only gives names of this table
}

}  // namespace

Result<TowerGraphs> build_tower(const formats::ModelConfig& tower) {
  TowerGraphs graphs;
  Builder patches{.graph = graphs.patches, .config = tower}, tokens{.graph = graphs.tokens, .config = tower};
  tower_of(tower).build_patches(patches);
  tower_of(tower).build_tokens(tokens);
  DP_CHECK_WHILE(graphs.patches.error(), "building the patches' graph of %s", tower.family.c_str());
  DP_CHECK_WHILE(graphs.tokens.error(), "building the tokens' graph of %s", tower.family.c_str());
  return graphs;
}

std::vector<Tap> position_taps(const formats::ModelConfig& tower, std::span<const PatchPlace> places,
                               uint32_t rows, uint32_t columns) {
  std::vector<Tap> out;
  if (taps_each(tower) == 0) return out;
  const PositionTable table{
      .side = tower.tower.table_side, .entries = tower.ctx_len, .rows = rows, .columns = columns};
  for (const PatchPlace& place : places) tower_of(tower).add_taps(table, place, out);
  if (tower.tower.has_class_row) add_class_row_taps(table, out);
  return out;
}

uint32_t taps_each(const formats::ModelConfig& tower) { return tower_of(tower).taps_each; }

std::vector<double> tower_frequencies(const formats::ModelConfig& tower) {
  const uint32_t of_axis = tower.head_dim / 4;
  std::vector<double> out;
  for (uint32_t pair = 0; pair < 2 * of_axis && tower.rope.rotary_dim != 0; ++pair) {
    // Columns may have the frequencies between those of rows.
    const double between = pair >= of_axis && tower_of(tower).alternates ? 0.5 : 0;
    out.push_back(std::pow(tower.rope.theta, -(pair % of_axis + between) / of_axis));
  }
  return out;
}

TokenOrder token_order(const formats::ModelConfig& tower, uint32_t rows, uint32_t columns) {
  TokenOrder order;
  const uint32_t edge = tower.tower.window;
  if (edge == 0) return order;
  for (uint32_t top = 0; top < rows; top += edge) {
    for (uint32_t left = 0; left < columns; left += edge) {
      const uint32_t bottom = std::min(top + edge, rows), right = std::min(left + edge, columns);
      const auto first = static_cast<uint32_t>(order.tokens.size());
      const uint32_t last = first + (bottom - top) * (right - left) - 1;
      for (uint32_t row = top; row < bottom; ++row) {
        for (uint32_t column = left; column < right; ++column) {
          order.tokens.push_back(row * columns + column);
          order.windows.emplace_back(first, last);
        }
      }
    }
  }
  return order;
}

}  // namespace doppler::families
