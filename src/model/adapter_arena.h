// The matrices of adapters on the device. Rows name a slot by number (kernels/low_rank/low_rank.h). A slot holds one
// adapter, or several with a scale each. Ranks are padded to the arena's. Slot numbers begin at 1; 0 is the model
// without adapters. A slot can get other adapters without new recordings.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/device.h"
#include "gpu/plan_builder.h"
#include "graph/graph.h"
#include "lowering/bound_weights.h"
#include "model/adapter_parts.h"

namespace doppler::model {

inline constexpr uint32_t kMostAdapterSlots = 256;

// The room that plans are recorded for. load() refuses adapters that do not fit.
struct AdapterRoom {
  uint32_t slots = 0;       // 0: none
  uint32_t rank = 0;        // of a slot; at least the sum of the `first` adapters' ranks
  bool everywhere = false;  // room at every matrix, for gains and constants too; false: as `first` needs
  std::vector<AdapterPart> first;  // the adapters that slot 1 begins with
};

// Estimates the bytes of this room before a graph exists.
uint64_t estimate_adapters(const AdapterRoom& room, const formats::ModelConfig& config);

class AdapterArena {
 public:
  // Makes the buffers, and finds the nodes of the graph that have room. checkpoint, config and graph must outlive the
  // arena.
  Task<Result<lowering::Adapters>> make(gpu::Device& device, gpu::PlanBuilder& builder,
                                        const graph::Graph& graph, const formats::Checkpoint& checkpoint,
                                        const formats::ModelConfig& config, const AdapterRoom& room,
                                        uint32_t sequences);
  bool is_there() const { return slots_ != 0; }
  uint32_t slots() const { return slots_; }
  uint32_t rank() const { return rank_; }
  uint64_t bytes() const { return bytes_; }
  bool adapts_embedding() const { return adapts_embedding_; }

  // Errors: the ranks need more than a slot has, or a matrix has no room (the error names it). The parts must replace
  // the whole tensors that the model was loaded with, and no others.
  Result<void> check(const std::vector<AdapterPart>& parts) const;
  // Slot 1, 2, ... holds only these adapters from now on, for all that is queued later.
  Task<Result<void>> load(uint32_t slot, std::vector<AdapterPart> parts);
  // Rows of a sequence at positions `from` and later have the adapters of this slot from now on.
  Result<void> use(uint32_t sequence, uint32_t slot, uint32_t from = 0);

 private:
  struct Matrix {
    TensorId tensor = TensorId::kQ;
    uint32_t layer = 0;
    uint32_t n = 0, first = 0;  // the outputs, and the first one's place
  };
  struct Node {
    std::vector<Matrix> matrices;  // none: the embedding
    uint32_t k = 0, n = 0;         // for the embedding: the vocabulary and its columns
    bool is_affine = false;
    float embedding_scale = 1;
    gpu::Buffer *a = nullptr, *b = nullptr;
    std::vector<bool> is_written;  // by slot
  };
  // The matrices of a node that get room; empty: the node has none.
  std::optional<Node> node_of(const graph::Node& node, const graph::Graph& graph,
                              const AdapterRoom& room) const;
  Result<void> check_replaced(const std::vector<AdapterPart>& parts) const;
  uint64_t a_floats(const Node& node) const;
  uint64_t b_floats(const Node& node) const;
  Task<Result<void>> load_node(Node& node, uint32_t slot, const std::vector<AdapterPart>& parts);
  Task<Result<void>> fill_products(const Node& node, const std::vector<AdapterPart>& parts,
                                   std::vector<float>& a, std::vector<float>& b, bool& is_touched);
  void fill_embedding(const Node& node, const std::vector<AdapterPart>& parts, std::vector<float>& a,
                      std::vector<float>& b, bool& is_touched) const;
  Task<Result<gpu::Buffer*>> buffer(const char* name, uint64_t bytes);

  gpu::Device* device_ = nullptr;
  const formats::Checkpoint* checkpoint_ = nullptr;
  const formats::ModelConfig* config_ = nullptr;
  uint32_t slots_ = 0, rank_ = 0;
  uint64_t bytes_ = 0;
  bool adapts_embedding_ = false;
  std::shared_ptr<const formats::FittedAdapter> replacing_;  // its whole tensors are in the checkpoint
  std::deque<gpu::Buffer> buffers_;
  gpu::Buffer* of_sequences_ = nullptr;
  std::vector<Node> nodes_;
};

}  // namespace doppler::model
