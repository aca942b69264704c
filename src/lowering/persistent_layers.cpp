// persistent_layers: the layers of a decode step as one dispatch (kernels/persistent), if the graph is a chain of
// blocks of norm, q k v, attention, output, norm, gate and up, down, in any form that the kernel has.
#include "kernels/persistent/layers.h"
#include "lowering/products.h"
#include "lowering/rule_functions.h"

namespace doppler::lowering {
namespace {

// The nodes of a block.
struct Block {
  uint32_t attention_norm, qkv, attention, output, ffn_norm, gate_up, gated, down;
  std::optional<uint32_t> q_norm, k_norm, post_attention_norm, post_ffn_norm;
  graph::Rope rope;
  Value x;  // the stream after the block
};

// Follows q or k from the product through its norm and rotation.
Value follow_head(const Lowering& l, Value head, std::optional<uint32_t>& norm, graph::Rope& rope) {
  if (const auto reader = l.only_reader(head, OpKind::kHeadNorm)) {
    norm = reader;
    head = l.node(*reader).outputs[0];
  }
  if (const auto reader = l.only_reader(head, OpKind::kRope)) {
    rope = std::get<graph::Rope>(l.node(*reader).operation);
    head = l.node(*reader).outputs[0];
  }
  return head;
}

// x + branch, or x + norm(branch): the sum, if there is one.
std::optional<Value> follow_branch(const Lowering& l, Value x, Value branch, std::optional<uint32_t>& norm) {
  if (const auto reader = l.only_reader(branch, OpKind::kRmsNorm)) {
    norm = reader;
    branch = l.node(*reader).outputs[0];
  }
  const auto add = l.only_reader(branch, OpKind::kAdd);
  if (!add || other_input(l, *add, branch) != x) return std::nullopt;
  return l.node(*add).outputs[0];
}

std::optional<Block> match_block(const Lowering& l, Value x) {
  Block block{};
  const auto outputs = [&](uint32_t node) -> const std::vector<Value>& { return l.node(node).outputs; };
  const auto attention_norm = norm_of(l, x);
  if (!attention_norm) return std::nullopt;
  const auto qkv = l.only_reader(outputs(*attention_norm)[0], OpKind::kLinear);
  if (!qkv || outputs(*qkv).size() != 3) return std::nullopt;
  const Value q = follow_head(l, outputs(*qkv)[0], block.q_norm, block.rope);
  const Value k = follow_head(l, outputs(*qkv)[1], block.k_norm, block.rope);
  const auto attention = l.only_reader(q, OpKind::kAttention);
  if (!attention || l.node(*attention).inputs != std::vector<Value>{q, k, outputs(*qkv)[2]})
    return std::nullopt;
  if (!l.node(*attention).vectors.empty()) return std::nullopt;  // sinks
  const auto output = l.only_reader(outputs(*attention)[0], OpKind::kLinear);
  if (!output) return std::nullopt;
  const auto middle = follow_branch(l, x, outputs(*output)[0], block.post_attention_norm);
  const auto ffn_norm = middle ? norm_of(l, *middle) : std::nullopt;
  if (!ffn_norm) return std::nullopt;
  const auto gate_up = l.only_reader(outputs(*ffn_norm)[0], OpKind::kLinear);
  if (!gate_up || outputs(*gate_up).size() != 2) return std::nullopt;
  const auto gated = l.only_reader(outputs(*gate_up)[0], OpKind::kGated);
  if (gated && std::get<graph::Gated>(l.node(*gated).operation).limit != 0) return std::nullopt;
  const auto down = gated ? l.only_reader(outputs(*gated)[0], OpKind::kLinear) : std::nullopt;
  if (!down) return std::nullopt;
  const auto end = follow_branch(l, *middle, outputs(*down)[0], block.post_ffn_norm);
  if (!end) return std::nullopt;
  block.attention_norm = *attention_norm;
  block.qkv = *qkv;
  block.attention = *attention;
  block.output = *output;
  block.ffn_norm = *ffn_norm;
  block.gate_up = *gate_up;
  block.gated = *gated;
  block.down = *down;
  block.x = *end;
  return block;
}

// True if the norm after x selects the logits' rows: no layer follows.
bool is_end(const Lowering& l, Value x) {
  const auto norm = norm_of(l, x);
  return norm && l.node(l.graph().info(l.node(*norm).inputs[0]).node).kind() == OpKind::kLogitsRows;
}

TensorView vector_of(const Lowering& l, uint32_t norm) {
  return l.weights().vectors[l.node(norm).vectors[0].index];
}

float eps_of(const Lowering& l, uint32_t norm) {
  return std::get<graph::RmsNorm>(l.node(norm).operation).eps;
}

// The attention of a layer, as far as layers may differ.
struct Attending {
  uint32_t window = 0, table = 0;
  bool operator==(const Attending&) const = default;
};

const graph::Attention& attention_of(const Lowering& l, const Block& block) {
  return std::get<graph::Attention>(l.node(block.attention).operation);
}

Attending attending(const Lowering& l, const Block& block) {
  return {.window = attention_of(l, block).sliding_window, .table = block.rope.table};
}

kernels::PersistentLayer layer_of(const Lowering& l, const Block& block, const Attending& usual) {
  const auto product = [&](uint32_t node) -> const Projection& { return l.weights().products[node]; };
  const Projection &qkv = product(block.qkv), &gate_up = product(block.gate_up);
  kernels::PersistentLayer layer{.out = &product(block.output).parts[0].weight,
                                 .gate_up = gate_up.parts.size() == 1 ? &gate_up.parts[0].weight : nullptr,
                                 .down = &product(block.down).parts[0].weight,
                                 .ffn_norm = vector_of(l, block.ffn_norm),
                                 .next_norm = vector_of(l, *norm_of(l, block.x)),
                                 .cache = l.io().cache[attention_of(l, block).layer],
                                 .is_sliding = attending(l, block) != usual,
                                 .out_bias = product(block.output).parts[0].bias,
                                 .down_bias = product(block.down).parts[0].bias,
                                 .gate_up_bias = gate_up.parts[0].bias,
                                 .qk_norms = l.weights().head_norms[block.attention]};
  for (const Projection::Part& part : qkv.parts) layer.qkv.push_back(&part.weight);
  if (qkv.has_bias()) {
    for (const Projection::Part& part : qkv.parts) layer.qkv_bias.push_back(part.bias);
  }
  if (block.post_attention_norm) layer.post_attention_norm = vector_of(l, *block.post_attention_norm);
  if (block.post_ffn_norm) layer.post_ffn_norm = vector_of(l, *block.post_ffn_norm);
  return layer;
}

// Compares the properties that all layers must share, beside those that the kernel itself compares: the difference, or
// "".
std::string refuse_differences(const Lowering& l, const Block& first, const Block& other) {
  const graph::Attention &a = attention_of(l, first), &b = attention_of(l, other);
  if (a.n_heads != b.n_heads || a.n_kv_heads != b.n_kv_heads || a.head_dim != b.head_dim ||
      a.scale != b.scale || a.softcap != b.softcap || first.rope.rotary_dim != other.rope.rotary_dim ||
      first.rope.gpt_j_pairs != other.rope.gpt_j_pairs) {
    return "its layers differ in their heads";
  }
  for (const std::optional<uint32_t> norm :
       {std::optional(other.attention_norm), std::optional(other.ffn_norm), other.post_attention_norm,
        other.post_ffn_norm}) {
    if (norm && eps_of(l, *norm) != eps_of(l, first.attention_norm)) return "its norms differ in epsilon";
  }
  for (const std::optional<uint32_t> norm : {other.q_norm, other.k_norm}) {
    if (norm && std::get<graph::HeadNorm>(l.node(*norm).operation).eps != eps_of(l, first.attention_norm)) {
      return "its norms differ in epsilon";
    }
  }
  for (const uint32_t node : {other.qkv, other.gate_up}) {
    const Projection& product = l.weights().products[node];
    for (const Projection::Part& part : product.parts) {
      if (product.has_bias() && !part.bias.valid()) return "one of its products has a bias in part";
    }
  }
  return "";
}

}  // namespace

Result<Outcome> lower_persistent_layers(Lowering& l, uint32_t index) {
  const StepIo& io = l.io();
  if (!io.persistent.exchange.valid() || !io.begins_with_row) return not_matched();
  const Value begin = l.node(index).outputs[0];
  std::vector<Block> blocks;
  for (Value x = begin; !is_end(l, x); x = blocks.back().x) {
    const std::optional<Block> block = match_block(l, x);
    if (!block) return refused(format_text("layer %zu is not the kernel's kind of block", blocks.size()));
    blocks.push_back(*block);
  }
  if (blocks.empty()) return not_matched();
  const Block &first = blocks.front(), &last = blocks.back();
  const graph::Attention& attention = attention_of(l, first);
  // Layers that see all keys are the usual ones, if there are any.
  Attending usual = attending(l, first);
  for (const Block& block : blocks) {
    if (attending(l, block).window == 0) usual = attending(l, block);
  }
  const uint32_t hidden = l.graph().info(begin).columns;
  const uint32_t final_norm = *norm_of(l, last.x);
  kernels::Context ctx = l.context(index);
  ctx.op_label = "layers";
  kernels::PersistentLayers op{
      .layers = {},
      .first_norm = vector_of(l, first.attention_norm),
      .row = io.row,
      .next = {.buffer = ctx.plan.scratch("deferred_norm", DeferredNorm::bytes(hidden, true)),
               .weight = vector_of(l, final_norm),
               .k = hidden,
               .eps = eps_of(l, final_norm),
               .q8 = true},
      .exchange = io.persistent.exchange,
      .groups = io.persistent.groups,
      .n_heads = attention.n_heads,
      .hidden_dim = hidden,
      .ffn_dim = l.graph().info(l.node(first.gated).outputs[0]).columns,
      .norm_eps = eps_of(l, first.attention_norm),
      .activate = std::get<graph::Gated>(l.node(first.gated).operation).activation,
      .scale = attention.scale,
      .window = usual.window,
      .softcap = attention.softcap,
      .max_keys = io.max_keys,
      .table = l.weights().ropes[usual.table].table,
      .rotary_dim = first.rope.rotary_dim,
      .interleaved = first.rope.gpt_j_pairs,
      .attention_factor = l.weights().ropes[usual.table].attention_factor};
  if (io.rope.places != kernels::RopePlaces::kRow) op.unfit = "pictures shift its positions";
  std::optional<Attending> other;
  for (const Block& block : blocks) {
    if (op.unfit.empty()) op.unfit = refuse_differences(l, first, block);
    const Attending own = attending(l, block);
    if (own != usual) {
      if (other && own != *other) op.unfit = "its layers attend in more than two ways";
      other = own;
    }
    op.layers.push_back(layer_of(l, block, usual));
  }
  if (other) {
    const RopeTable& rope = l.weights().ropes[other->table];
    op.sliding = {.window = other->window, .table = rope.table, .attention_factor = rope.attention_factor};
  }
  DP_TRY(std::string reason, kernels::refuse_persistent_layers(ctx, op));
  if (!reason.empty()) return refused(std::move(reason));
  DP_CHECK(kernels::record(ctx, op));

  for (uint32_t i = 0; i <= l.graph().info(last.x).node; ++i) l.cover(i);
  l.set_form(last.x, Rows{.f32 = io.row});
  const auto head = l.only_reader(l.node(final_norm).outputs[0], OpKind::kLinear);
  if (!head) return applied();
  DP_TRY(reason, l.refuse_prologue(*head, kernels::PrologueKind::kDeferredNorm));
  DP_TRY(const ResolvedLinear* resolved, l.resolve(*head));
  if (!reason.empty() || resolved->choices[0].reads() != kernels::InputForm::kQ8) return applied();
  l.set_form(l.node(final_norm).outputs[0], op.next);
  l.cover(final_norm);
  return applied();
}

}  // namespace doppler::lowering
