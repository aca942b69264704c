// The forward pass of every family that this build knows. Read next: llama.cpp.
#pragma once

#include "formats/architectures/config.h"
#include "graph/graph.h"

namespace doppler::families {

// Error: there is no forward pass of the config's family; the sentence lists those that are.
Result<void> check_has_forward_pass(const formats::ModelConfig& config);
// Errors: the same; shapes that do not fit each other.
// drafts: with the next-token layer, which the config has.
Result<graph::Graph> build_graph(const formats::ModelConfig& config, bool drafts = false);

}  // namespace doppler::families
