// The memory of a model on the GPU before anything is loaded: weights in their device formats, cache for the given
// context, scratch. `inspect` prints it; loading refuses with figures when the device cannot hold it.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/architectures/config.h"
#include "formats/checkpoint.h"
#include "formats/quant/repack.h"
#include "gpu/caps.h"
#include "kernels/rope/rope.h"

namespace doppler::model {

// The size of the weights if the matrices were quantised anew.
struct QuantisedSize {
  const char* type;  // as `doppler convert --quantize` takes it
  uint64_t weight_bytes;
};

// Positions that the cache of a layer holds.
struct CacheLengths {
  uint32_t ctx_len = 0;
  uint32_t ring_len = 0;  // of layers that see a window; 0: ctx_len
};
// CacheLengths::ring_len of one sequence whose steps have up to `chunk` rows: 0 where the context is no longer.
uint32_t ring_positions(const formats::ModelConfig& config, uint32_t ctx_len, uint32_t chunk);

struct MemoryEstimate {
  uint64_t weight_bytes = 0;
  uint64_t expert_bytes = 0;       // of weight_bytes: matrices of experts
  uint64_t layer_table_bytes = 0;  // of weight_bytes: embeddings of each layer
  uint64_t cache_bytes = 0;
  uint64_t ring_bytes = 0;  // of cache_bytes: of layers that keep ring_len positions, whatever the context
  uint32_t ring_len = 0;
  // The keys, or the values, of the largest layer: one binding. A cache in q8_0 counts as its copy in f16.
  uint64_t cache_buffer_bytes = 0;
  uint64_t state_bytes = 0;    // of layers with a recurrent state, checkpoints too
  uint64_t scratch_bytes = 0;  // estimate: activations of one prefill chunk, logits, copied_bytes
  uint64_t copied_bytes =
      0;  // of a cache in q8_0: the largest layer in f16 (kernels/attention/attention_unpack.wgsl)
  std::vector<QuantisedSize> smaller =
      {};  // than weight_bytes, the largest first; set by estimate_memory(), not by a load
  uint64_t total() const { return weight_bytes + cache_bytes + state_bytes + scratch_bytes; }
};

// It counts the layers that the config has (ModelConfig::part).
MemoryEstimate estimate_memory(const formats::ModelConfig& config, const formats::Checkpoint& checkpoint,
                               formats::LayoutPolicy layout, CacheLengths lengths, uint32_t chunk,
                               kernels::CacheFormat cache_format);

// The weights, the cache and the state of one sequence of each layer. The first layer's number includes the
// embeddings, and the last one's the head.
std::vector<uint64_t> layer_bytes(const formats::ModelConfig& config, const formats::Checkpoint& checkpoint,
                                  formats::LayoutPolicy layout, CacheLengths lengths,
                                  kernels::CacheFormat cache_format);

// The estimate becomes that of a load whose embeddings of each layer stay on the host: so many rows of their table lie
// on the device (model/host_table.h). exact: LayoutPolicy's.
void keep_layer_table_on_host(MemoryEstimate& estimate, const formats::ModelConfig& config,
                              const formats::Checkpoint& checkpoint, bool exact, uint32_t rows);

// The shape of a layer's cache; the views are the caller's.
kernels::CacheView cache_shape(const formats::ModelConfig& config, uint32_t layer, CacheLengths lengths,
                               kernels::CacheFormat format);

// Error: a layer's heads are not whole blocks of the format.
Result<void> check_cache_format(const formats::ModelConfig& config, kernels::CacheFormat format);

// Bytes of what WeightLoader::place_together() is for: the matrices of each layer, in whole multiples of 256, and every
// vector beside the tables of the model's own, each at a binding's alignment.
struct TogetherBytes {
  std::vector<uint64_t> layers;
  uint64_t vectors = 0;
};
TogetherBytes together_bytes(const formats::ModelConfig& config, const formats::Checkpoint& checkpoint,
                             formats::LayoutPolicy layout);

// Error: the device cannot hold it, or not bind a layer's cache at once; says what each part takes and which shorter
// context, or else which quantisation, would fit. A device whose memory is not known (Caps::memory_bytes 0) is only
// asked for its bindings.
Result<void> check_memory(const MemoryEstimate& estimate, const gpu::Caps& caps, uint32_t ctx_len);

}  // namespace doppler::model
