// persistent_layers: the layers of a decode step as one dispatch (kernels/persistent), where the graph is a chain of blocks
// of norm, q k v, attention, output, norm, gate and up, down, in any dress that the kernel has.
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
  Value x;  // behind it
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

// x + branch, or x + norm(branch): the sum, where there is one.
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
  const auto output = l.only_reader(outputs(*attention)[0], OpKind::kLinear);
  if (!output) return std::nullopt;
  const auto middle = follow_branch(l, x, outputs(*output)[0], block.post_attention_norm);
  const auto ffn_norm = middle ? norm_of(l, *middle) : std::nullopt;
  if (!ffn_norm) return std::nullopt;
  const auto gate_up = l.only_reader(outputs(*ffn_norm)[0], OpKind::kLinear);
  if (!gate_up || outputs(*gate_up).size() != 2) return std::nullopt;
  const auto gated = l.only_reader(outputs(*gate_up)[0], OpKind::kGated);
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

// The norm behind x selects the logits' rows: no layer follows.
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

kernels::PersistentLayer layer_of(const Lowering& l, const Block& block) {
  const auto product = [&](uint32_t node) -> const Projection& { return l.weights().products[node]; };
  kernels::PersistentLayer layer{
      .out = &product(block.output).parts[0].weight,
      .gate_up = product(block.gate_up).parts.size() == 1 ? &product(block.gate_up).parts[0].weight : nullptr,
      .down = &product(block.down).parts[0].weight,
      .ffn_norm = vector_of(l, block.ffn_norm),
      .next_norm = vector_of(l, *norm_of(l, block.x)),
      .cache = l.io().cache[std::get<graph::Attention>(l.node(block.attention).operation).layer]};
  for (const uint32_t node : {block.qkv, block.output, block.gate_up, block.down}) {
    layer.has_bias = layer.has_bias || product(node).has_bias();
  }
  for (const Projection::Part& part : product(block.qkv).parts) layer.qkv.push_back(&part.weight);
  return layer;
}

// What all layers must have in common; "" if they have.
std::string refuse_differences(const Lowering& l, const Block& first, const Block& other) {
  const auto &a = std::get<graph::Attention>(l.node(first.attention).operation),
             &b = std::get<graph::Attention>(l.node(other.attention).operation);
  if (a.n_heads != b.n_heads || a.n_kv_heads != b.n_kv_heads || a.head_dim != b.head_dim ||
      a.scale != b.scale || eps_of(l, first.attention_norm) != eps_of(l, other.attention_norm)) {
    return "the layers differ in their heads or epsilons";
  }
  if (other.q_norm || other.k_norm || other.post_attention_norm || other.post_ffn_norm) {
    return "it has no norms of q and k or behind the branches";
  }
  if (a.sliding_window != b.sliding_window || first.rope.table != other.rope.table || b.softcap != 0) {
    return "it has one window and one rotation for all layers, and no softcap";
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
  const auto& attention = std::get<graph::Attention>(l.node(first.attention).operation);
  const uint32_t hidden = l.graph().info(begin).columns;
  const uint32_t final_norm = *norm_of(l, last.x);
  kernels::Context ctx = l.context(index);
  ctx.role = "layers";
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
      .window = attention.sliding_window,
      .max_keys = io.max_keys,
      .table = l.weights().ropes[first.rope.table].table,
      .rotary_dim = first.rope.rotary_dim,
      .interleaved = first.rope.gpt_j_pairs,
      .attention_factor = l.weights().ropes[first.rope.table].attention_factor};
  for (const Block& block : blocks) {
    if (op.unfit.empty()) op.unfit = refuse_differences(l, first, block);
    op.layers.push_back(layer_of(l, block));
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
