// graph.h: the operations of multi-head latent attention.
#include <algorithm>

#include "base/text.h"
#include "graph/graph.h"

namespace doppler::graph {

Value Graph::every_expert(uint32_t n) {
  const auto known = std::ranges::find_if(nodes_, [n](const Node& node) {
    const auto* every = std::get_if<EveryExpert>(&node.operation);
    return every && every->n == n;
  });
  if (known != nodes_.end()) return known->outputs[0];
  check(n != 0, "Every one of 0 experts.");
  return add_one({.operation = EveryExpert{.n = n},
                  .inputs = {},
                  .outputs = {},
                  .matrices = {},
                  .vectors = {},
                  .op_label = "every_expert"},
                 2 * n);
}

Value Graph::head_part(Value x, const HeadPart& part) {
  check(part.head_dim != 0 && part.n != 0 && columns(x) % part.head_dim == 0 &&
            part.first + part.n <= part.head_dim,
        format_text("Values %u to %u of heads of %u in %u columns.", part.first, part.first + part.n,
                    part.head_dim, columns(x)));
  const uint32_t n_heads = part.head_dim == 0 ? 0 : columns(x) / part.head_dim;
  const std::string label = x.index < values_.size() ? nodes_[values_[x.index].node].op_label : "";
  return add_one(
      {.operation = part, .inputs = {x}, .outputs = {}, .matrices = {}, .vectors = {}, .op_label = label},
      n_heads * part.n);
}

std::array<Value, 3> Graph::latent_heads(Value q, Value absorbed, Value latent, Value key,
                                         const LatentHeads& heads) {
  check(heads.n_heads != 0 && columns(q) == heads.n_heads * (heads.nope_dim + heads.rope_dim) &&
            columns(absorbed) == heads.n_heads * heads.rank && columns(latent) == heads.rank &&
            columns(key) == heads.rope_dim,
        format_text("%u heads of %u + %u on latents of %u do not fit %u, %u, %u and %u columns.",
                    heads.n_heads, heads.nope_dim, heads.rope_dim, heads.rank, columns(q), columns(absorbed),
                    columns(latent), columns(key)));
  const uint32_t head_dim = heads.rope_dim + heads.rank;
  const uint32_t made[] = {heads.n_heads * head_dim, head_dim, head_dim};
  const std::string label = latent.index < values_.size() ? nodes_[values_[latent.index].node].op_label : "";
  const std::vector<Value> out = add_node({.operation = heads,
                                           .inputs = {q, absorbed, latent, key},
                                           .outputs = {},
                                           .matrices = {},
                                           .vectors = {},
                                           .op_label = label},
                                          made);
  return {out[0], out[1], out[2]};
}

}  // namespace doppler::graph
