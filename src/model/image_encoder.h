// A model's vision tower on a device: a picture's tiles to a row of numbers for each of its tokens. Everything is
// created by load(); encode() only writes inputs and submits plans. Pictures' rows are kept by image_store.h.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "families/families.h"
#include "formats/checkpoint.h"
#include "gpu/device.h"
#include "gpu/plan_builder.h"
#include "images/prepared_image.h"
#include "kernels/context.h"
#include "lowering/bound_weights.h"
#include "lowering/rule.h"
#include "lowering/step_io.h"
#include "model/weight_stream.h"

namespace doppler::model {

// Patches of a tile at most. A budget, since every patch takes memory while the tower runs.
inline constexpr uint32_t kMostPatches = 8192;

struct EncoderOptions {
  kernels::Policy policy;
  lowering::RuleSet rules;
  kernels::CacheFormat cache_format = kernels::CacheFormat::kF16;  // of the tower's keys and values
  uint32_t most_patches = kMostPatches;
};

class ImageEncoder {
 public:
  // rules, tower: of the checkpoint. Both and `device` must outlive the encoder.
  static Task<Result<std::unique_ptr<ImageEncoder>>> load(gpu::Device& device,
                                                          const formats::Checkpoint& checkpoint,
                                                          formats::ModelConfig tower,
                                                          images::ImageRules rules, EncoderOptions options,
                                                          UploadProgress progress);

  const images::ImageRules& rules() const { return rules_; }
  const formats::ModelConfig& tower() const { return tower_; }
  // The length of a token's row: the values that replace its embedding, then those that are added after the first
  // layers.
  uint32_t row_size() const;
  // Tokens of a picture at most, of one tile.
  uint32_t most_tile_tokens() const { return most_patches_ / formats::merged_patches(tower_); }
  uint64_t weight_bytes() const { return weight_bytes_; }
  uint64_t scratch_bytes() const { return scratch_bytes_; }

  // Queues the picture's rows into `to`, f32 [rows, row_size()], from row `first` on. Errors: a tile has more patches
  // than the plans take.
  Result<void> encode(const images::PreparedImage& image, const gpu::Buffer& to, uint32_t first);

  // Writes what the plans of patches and of tokens read for this tile. The two then make its rows. Errors: as encode().
  using TileWork = std::array<gpu::Work, 2>;
  Result<TileWork> prepare(const images::Picture& tile);

 private:
  ImageEncoder(gpu::Device& device, formats::ModelConfig tower, images::ImageRules rules)
      : device_(device), tower_(std::move(tower)), rules_(std::move(rules)) {}

  Task<Result<gpu::Buffer*>> buffer(gpu::PlanBuilder& builder, const char* name, uint64_t bytes,
                                    kernels::TensorView* view);
  Task<Result<void>> make_buffers(gpu::PlanBuilder& builder, kernels::CacheFormat format);
  Result<void> record(gpu::PlanBuilder& builder, const EncoderOptions& options);
  Result<void> encode_tile(const images::Picture& tile, const gpu::Buffer& to, uint32_t first);
  families::TokenOrder order_of(const images::Picture& tile) const;
  Result<void> write_rows(const images::Picture& tile, const families::TokenOrder& order);

  gpu::Device& device_;
  const formats::ModelConfig tower_;
  const images::ImageRules rules_;
  uint32_t most_patches_ = 0;
  families::TowerGraphs graphs_;
  lowering::BoundWeights bound_patches_, bound_tokens_;
  std::vector<std::unique_ptr<gpu::Buffer>> buffers_;
  std::deque<gpu::Buffer> weights_;
  uint64_t weight_bytes_ = 0, scratch_bytes_ = 0;
  gpu::BuiltPlans built_;  // "patches", "tokens"
  std::vector<kernels::Choice> choices_;
  std::vector<lowering::PlanReport> reports_;

  struct Views {
    kernels::TensorView patches_state, tokens_state, pixels, origins, levels, patches, taps, table, windows,
        states, deep, rows;
    kernels::CacheView cache;
  };
  Views views_;
  gpu::Buffer *patches_state_ = nullptr, *tokens_state_ = nullptr, *pixels_ = nullptr, *origins_ = nullptr,
              *taps_ = nullptr, *table_ = nullptr, *windows_ = nullptr, *rows_ = nullptr;
};

}  // namespace doppler::model
