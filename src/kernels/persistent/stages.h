// Deals the work of a layer to the workgroups of persistent_layers.wgsl: products by the numbers of its Stage, chosen
// so that the busiest invocation loads as few units of weights as possible, heads and splits of the keys. Also the
// places in the exchange of the values that they hand each other.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/wgsl_composer.h"
#include "kernels/attention/variants.h"
#include "kernels/persistent/layers.h"
#include "kernels/persistent/shape.h"

namespace doppler::kernels {

// Names and units: persistent_stage.wgsl.
struct PersistentStage {
  uint32_t rows = 32, items = 0, units = 0, sums = 1, each = 1, units_each = 1;
};

struct PersistentStages {
  uint32_t threads = 0, subgroup = 0;
  PersistentStage qkv, out, gate, down;
  uint32_t own_rows = 0;     // of the residual stream, at most
  uint32_t most_values = 0;  // outputs of a round, or a head
  uint32_t partials = 0;
  uint32_t most_blocks = 0;  // of x
};
PersistentStages persistent_stages(const PersistentLayers& op, const PersistentShape& shape,
                                   const gpu::Caps& caps);
std::vector<gpu::WgslConst> stage_consts(const PersistentStages& stages);

// The attention of each layer, as far as its shape goes.
Attention attention_of(const PersistentLayers& op);

// Attention of a dispatch: a head a workgroup in short contexts, else `splits` of the keys for each of n_kv_heads *
// head_chunks groups of heads.
struct PersistentHeads {
  DecodeSizes sizes;
  bool is_long = false;
};
PersistentHeads persistent_heads(const PersistentLayers& op, const gpu::Caps& caps);

// Places in the exchange of a layer, in words: q k v at 0, then these. Dispatches for short and for long contexts have
// a part of the exchange and counters each, so that every word is written whenever its counter moves on.
struct ExchangeLayout {
  uint32_t y = 0, out = 0, gate = 0, down = 0, parts = 0, words = 0;
  uint32_t counters = 0, first = 0;  // where those of this kind of dispatch are, and its layer 0
};
ExchangeLayout exchange_layout(const PersistentLayers& op, const gpu::Caps& caps);

}  // namespace doppler::kernels
