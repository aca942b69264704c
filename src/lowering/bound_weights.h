// The weights of a graph in GPU memory, by the nodes that use them: what the loader (src/model) gives to lowering.
#pragma once

#include <optional>
#include <vector>

#include "kernels/linear/linear.h"

namespace doppler::lowering {

// y = x W^T + b for stacked W: one product if all parts share a format, otherwise one a format, side by side. For
// experts, n counts the outputs of all slots of a row, and a weight holds all experts of its matrices.
struct Projection {
  struct Part {
    kernels::Weight weight;
    kernels::TensorView bias;  // f32 [weight.n], or invalid
    uint32_t column = 0;       // of y, where this part's outputs begin
    uint32_t matrices = 1;     // of experts: how many the weight stacks
  };
  std::vector<Part> parts;
  // If there are two parts: their biases once more, f32 [n], for one dispatch (LinearPair); invalid: neither has one.
  kernels::TensorView pair_bias;
  uint32_t n = 0;  // outputs of all parts together
  uint32_t k = 0;
  uint32_t n_experts = 0;  // of experts: how many each matrix has here, or slots for them

  bool has_bias() const;
};

// Frequencies of a rotation.
struct RopeTable {
  kernels::TensorView table;  // kernels::make_rope_table()
  float attention_factor = 1.0f;
};

// An embed node whose table is on the host (model/host_table.h): the bound table holds only the rows of the step's
// tokens.
struct HostRows {
  uint32_t node = 0;
  kernels::TensorView numbers;  // u32 0, 1, ...: what the node reads in place of tokens
};

// The matrices of the low-rank adapters of a node, in the layout of kernels/low_rank/low_rank.h. For an embed node `a`
// has the rows of tokens.
struct AdapterProduct {
  kernels::TensorView a, b;
  uint32_t rank = 0, slots = 0;
  std::vector<uint32_t> ends;  // where the outputs of each of the node's matrices end
  bool is_affine = false;
};
struct Adapters {
  kernels::TensorView of_sequences;  // u32, kernels::AdapterRows::adapters
  std::vector<std::optional<AdapterProduct>>
      products;  // by node; empty: the model was loaded without room for any
};

struct BoundWeights {
  std::vector<Projection> products;     // by node: of linear nodes and those of experts
  std::vector<kernels::Weight> tables;  // by node: of embed nodes
  std::optional<HostRows> host_rows;
  std::vector<kernels::TensorView> vectors;  // by graph::Vector::index: f32 [n]
  // By node, of attention: f32 norms of q, then of k, each of head_dim values or of all columns.
  std::vector<kernels::TensorView> head_norms;
  // By node, of what has several in one view: its vectors one after another, f32.
  std::vector<kernels::TensorView> node_vectors;
  std::vector<RopeTable> ropes;  // by graph::Rope::table
  Adapters adapters;
};

}  // namespace doppler::lowering
