// The uniform table of a dispatch of persistent_layers.wgsl: where each layer's weights, norms, biases and caches are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/persistent/ranges.h"
#include "kernels/persistent/stages.h"

namespace doppler::kernels {

// The number of layers that the dispatches' tables have room for.
uint32_t table_rows(std::span<const LayerRange> ranges);
// The words of one dispatch, for so many rows.
std::vector<uint8_t> layer_table(const PersistentLayers& op, const PersistentShape& shape,
                                 const PersistentStages& stages, const ExchangeLayout& exchange,
                                 const LayerRange& range, uint32_t rows);

}  // namespace doppler::kernels
