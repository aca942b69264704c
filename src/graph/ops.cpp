#include "graph/ops.h"

#include <cstddef>

namespace doppler::graph {

const char* op_name(OpKind kind) {
  static constexpr const char* kNames[kOpKindCount] = {
      "embed",      "rms_norm",      "head_norm",    "linear",        "rope",          "attention",
      "gated",      "add",           "scale",        "query_scale",   "xielu",         "logits_rows",
      "route",      "expert_linear", "expert_sum",   "causal_conv",   "gated_delta",   "mamba2",
      "gated_norm", "output_gate",   "every_expert", "head_part",     "latent_heads",  "multiply",
      "slice",      "sparsify",      "altup_match",  "altup_predict", "altup_correct", "layer_norm",
      "positions",  "activate",      "concat",       "input",         "table_rows",    "image_rows",
      "mean_parts", "clamp",         "standardise"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace doppler::graph
