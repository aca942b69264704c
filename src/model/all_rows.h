// The logits of all rows of a chunk, and what else a model loaded for them gives of each: hidden states, what its
// next-token layer says. For perplexity, embeddings and tests. DeviceModel loads it: buffers, cache and plans are that
// one's.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "formats/architectures/config.h"
#include "gpu/device.h"
#include "model/host_table.h"
#include "model/image_inputs.h"
#include "model/kv_cache.h"
#include "model/recurrent_states.h"

namespace doppler::model {

// Everything that an AllRows uses. The DeviceModel owns it all and outlives it.
struct AllRowsParts {
  gpu::Buffer *state = nullptr, *tokens = nullptr, *token_types = nullptr, *logits = nullptr,
              *hidden = nullptr, *next_logits = nullptr;  // null: the model or the options have no such thing
  HostTable* table = nullptr;
  KvCache* cache = nullptr;
  RecurrentStates* states = nullptr;
  uint32_t ctx_len = 0, chunk = 0, result_dim = 0;
  std::function<const gpu::Plan&(uint32_t rows)> plan;
  // If experts are paged: replays all parts of a plan but the last, and gives that. Otherwise empty.
  std::function<Task<Result<const gpu::Plan*>>(const gpu::Plan& plan, uint32_t rows)> last_part;
  ImageInputs images = {};
  std::function<const gpu::Plan&()> image_plan = {};  // of a step with pictures
};

class AllRows {
 public:
  AllRows(gpu::Device& device, const formats::ModelConfig& config, AllRowsParts parts)
      : device_(device), config_(config), parts_(std::move(parts)) {}

  // logits: [tokens, output_dim()]; hidden: [n_layers + 1, tokens, hidden_dim] or empty; next_logits: [tokens - 1,
  // vocab_size] of the next-token layer, which reads each row and the token after it, or empty. A part of a model that
  // does not end it gives the residual stream instead of logits.
  struct Rows {
    std::vector<float> logits, hidden, next_logits;
  };
  // Up to a chunk of tokens at positions pos.. of a sequence whose earlier tokens were run before. types: of the
  // tokens, for models that have them; empty: 0. Bidirectional models have pos 0. After pictures positions follow the
  // tokens of the call before.
  Task<Result<Rows>> run(uint32_t pos, std::span<const uint32_t> tokens, std::span<const uint32_t> types);

 private:
  // Returns whether the step has pictures.
  Result<bool> write(uint32_t pos, std::span<const uint32_t> tokens, std::span<const uint32_t> types);
  Task<Result<std::vector<float>>> read(const gpu::Buffer& buffer, uint64_t offset, uint64_t floats);

  gpu::Device& device_;
  const formats::ModelConfig& config_;
  const AllRowsParts parts_;
  uint32_t shift_ = 0;  // of the next position (ImageStore::axes)
};

}  // namespace doppler::model
