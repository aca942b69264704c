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
// Errors: the same; shapes that do not fit each other.
// drafts: with the next-token layer, which the config has.
Result<graph::Graph> build_graph(const formats::ModelConfig& config, bool drafts = false);
// The same for prompts with pictures, by the model's tower. It declares the same weights.
Result<graph::Graph> build_image_graph(const formats::ModelConfig& config, const formats::ModelConfig& tower);

// A vision tower's two graphs. The first reads patches (input 0); its result, and the hidden values that it marks, are what
// the second reads, the patches of a token in one row: input 0, and 1, ... of the marked. Its result has a row a token:
// what replaces embeddings, then what is added behind the text model's first layers.
struct TowerGraphs {
  graph::Graph patches, tokens;
};
Result<TowerGraphs> build_tower(const formats::ModelConfig& tower);

// What a tower's rows are given besides the values of patches.
struct Tap {
  uint32_t entry = 0;  // of the table of learned positions
  float weight = 0;
};
// places: of each patch, in the order of rows, in a grid of so many rows and columns. [patches, taps_each(tower)]:
// graph::TableRows; empty for towers without such a table.
std::vector<Tap> position_taps(const formats::ModelConfig& tower, std::span<const PatchPlace> places,
                               uint32_t rows, uint32_t columns);
uint32_t taps_each(const formats::ModelConfig& tower);
// The order in which the tower reads the tokens of a tile that has so many rows and columns of them: those of a window
// after one another. And of each token in this order the first and the last of its window.
struct TokenOrder {
  std::vector<uint32_t> tokens;  // of the tile, row by row; empty: as they are
  std::vector<std::pair<uint32_t, uint32_t>> windows;
};
TokenOrder token_order(const formats::ModelConfig& tower, uint32_t rows, uint32_t columns);
// By pair: how much a head turns from one row or column to the next. The first half of the pairs turns by rows, the second
// by columns.
std::vector<double> tower_frequencies(const formats::ModelConfig& tower);

}  // namespace doppler::families
