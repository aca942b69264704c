// The forward pass of every family that this build knows. Read next: llama.cpp.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "base/patch_place.h"
#include "formats/architectures/config.h"
#include "graph/graph.h"

namespace doppler::families {

// Error: there is no forward pass of the config's family; the sentence lists those that are.
Result<void> check_has_forward_pass(const formats::ModelConfig& config);
// The graph of the layers that the config has (ModelConfig::part). Errors: the same; shapes that do not fit each other.
// drafts: with the next-token layer, which the config has.
Result<graph::Graph> build_graph(const formats::ModelConfig& config, bool drafts = false);
// The same for prompts with pictures, by the model's tower. It declares the same weights.
Result<graph::Graph> build_image_graph(const formats::ModelConfig& config, const formats::ModelConfig& tower);

// A vision tower's two graphs. The first reads patches (input 0). The second reads its result (input 0) and the hidden
// values that it marks (inputs 1, ...), with all patches of a token in one row. Its result has a row for each token:
// the values that replace the embedding, then those that are added after the text model's first layers.
struct TowerGraphs {
  graph::Graph patches, tokens;
};
Result<TowerGraphs> build_tower(const formats::ModelConfig& tower);

// An entry of the table of learned positions that a patch gets, with its weight.
struct Tap {
  uint32_t entry = 0;  // of the table of learned positions
  float weight = 0;
};
// The taps of graph::TableRows [patches, taps_each(tower)]; empty for towers without such a table. places: of the
// patches, in the order of rows, in a grid of `rows` times `columns`.
std::vector<Tap> position_taps(const formats::ModelConfig& tower, std::span<const PatchPlace> places,
                               uint32_t rows, uint32_t columns);
uint32_t taps_each(const formats::ModelConfig& tower);
// The order in which a tower with windows reads a picture's tokens: window by window, so that a window is a run of
// rows.
struct TokenOrder {
  std::vector<uint32_t> tokens;                        // in the picture, row by row
  std::vector<std::pair<uint32_t, uint32_t>> windows;  // of each, the first and the last place in this order
};
// Empty for towers without windows.
TokenOrder token_order(const formats::ModelConfig& tower, uint32_t rows, uint32_t columns);
// For each pair: the angle from one row or column to the next. The first half of the pairs turns by rows, the second by
// columns.
std::vector<double> tower_frequencies(const formats::ModelConfig& tower);

}  // namespace doppler::families
