// The keys and values of all layers on the device: their buffers, the positions of the text that they hold, and the way
// to save them. Layers that see a window keep a ring of the last positions if that is shorter than the context
// (CacheLengths). A text is then continued only if the window before that place is still held, or from its beginning.
// Plans for many sequences use only the buffers.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "formats/architectures/config.h"
#include "gpu/device.h"
#include "gpu/plan_builder.h"
#include "model/memory_estimate.h"

namespace doppler::model {

// Keys or values of one layer: blocks one after another.
struct CachePlace {
  gpu::Buffer* buffer = nullptr;
  uint64_t offset = 0;
  uint64_t block_bytes = 0;  // with many sequences
  bool in_windows = false;   // likewise: the blocks are of the pool of layers with windows
};

struct CacheLayout {
  CacheLengths lengths;
  kernels::CacheFormat format = kernels::CacheFormat::kF16;
  // For plans of many sequences. window_blocks: of layers with a window; 0: as of the others, in one pool with them.
  uint32_t blocks = 1, block_len = 0, window_blocks = 0;
  // One buffer for as many layers as may be bound at once, for the lane persistent. Layers have caches of one shape
  // then.
  bool is_joined = false;
};

class KvCache {
 public:
  Task<Result<void>> make(gpu::Device& device, gpu::PlanBuilder& builder, const formats::ModelConfig& config,
                          const CacheLayout& layout);
  const std::vector<kernels::CacheView>& views() const { return views_; }  // by layer
  std::vector<CachePlace> places() const;  // of layers with a cache: all keys, then all values
  uint64_t bytes() const;

  // The largest position, at most `count`, after which the text can be continued: `count` or 0. Between generations.
  uint32_t continues_from(uint32_t count) const;
  // Rows from `pos` on will be written, one of continues_from()'s.
  Result<void> begin(uint32_t pos);
  // Rows that end at this position, at most, were queued.
  void note_end(uint32_t end);

  // Saves the cache of positions [0, count), one of continues_from()'s, and restores it. Layout: u32 count, u32 first
  // position of layers with a window, then of each layer, keys before values, the rows of each head. Empty for 0.
  Task<Result<std::vector<uint8_t>>> save(gpu::Device& device, uint32_t count) const;
  struct SavedHeader {
    uint32_t count = 0, first = 0;
  };
  static SavedHeader saved_header(std::span<const uint8_t> bytes);
  static uint32_t saved_positions(std::span<const uint8_t> bytes) { return saved_header(bytes).count; }
  // The number of these bytes that are the cache's. Error: they are fewer, or no cache.
  Result<uint64_t> saved_bytes(std::span<const uint8_t> bytes) const;
  // The number of bytes of a cache with this header. Error: no cache of this model has it.
  Result<uint64_t> saved_bytes(SavedHeader header) const;
  bool has_windows() const { return window_ != 0; }
  // The caller has asked saved_bytes().
  Task<Result<void>> restore(gpu::Device& device, std::span<const uint8_t> bytes);

 private:
  struct Layer {
    uint32_t index = 0;
    bool has_window = false;
    CachePlace k, v;
  };
  struct Stretch {  // of a buffer
    uint64_t offset = 0, bytes = 0;
  };
  std::vector<Stretch> stretches(const Layer& layer, uint32_t head, uint32_t from, uint32_t to) const;
  Task<Result<gpu::Buffer*>> buffer(gpu::Device& device, gpu::PlanBuilder& builder, const char* name,
                                    uint64_t bytes, kernels::TensorView* view);

  std::vector<std::unique_ptr<gpu::Buffer>> buffers_;
  std::vector<kernels::CacheView> views_;
  std::vector<Layer> layers_;  // with a cache
  CacheLengths lengths_;
  uint32_t window_ = 0;     // of the layers that have one; 0: no layer has one
  uint32_t held_from_ = 0;  // the first position of the text that layers with a window hold
};

}  // namespace doppler::model
