// Loads the weights that a graph's nodes use: it decides which matrices are stacked to one weight, which norms lie
// beside one another, and makes the tables of rotations. The order is the graph's, so that a layer's weights lie
// together.
// Read next: weight_loader.h.
#pragma once

#include "formats/architectures/config.h"
#include "graph/graph.h"
#include "lowering/bound_weights.h"
#include "lowering/rule.h"
#include "model/weight_loader.h"

namespace doppler::model {

struct BindOptions {
  uint32_t ctx_len = 0;  // positions that the session will use
  const lowering::RuleSet& rules;
  uint32_t expert_slots = 0;  // of each layer with a router; 0: all experts
  uint32_t host_rows =
      0;  // of a step at most, where embeddings of each layer stay on the host; 0: all lie on the device
};
// Errors: a tensor that is missing or has another shape, by its name.
Task<Result<lowering::BoundWeights>> bind_weights(WeightLoader& loader, const graph::Graph& graph,
                                                  const formats::ModelConfig& config, BindOptions options);

}  // namespace doppler::model
