// The forward pass of every family that this build knows. Read next: llama.cpp.
#pragma once

#include "graph/graph.h"
#include "model/config.h"

namespace doppler::families {

// Error: a family without a forward pass, or whose shapes do not fit each other.
Result<graph::Graph> build_graph(const model::ModelConfig& config);

}  // namespace doppler::families
