// A graph as text, one line a node, for `doppler graph` and for tests:
//   %3 = rms_norm(%0) attn_norm          [R, 64]   blk.0.attn_norm
#pragma once

#include <string>

#include "graph/graph.h"

namespace doppler::graph {

std::string describe(const Graph& graph);
// One node, without its number's line end: "%4 %5 %6 = linear(%3) blk.0.attn_q blk.0.attn_k blk.0.attn_v".
std::string describe(const Graph& graph, const Node& node);
// "[R, 64]", or "[R, 64] [R, 32] [R, 32]" for several values.
std::string shape_text(const Graph& graph, const Node& node);

}  // namespace doppler::graph
