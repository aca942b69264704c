// Shapes, labels and the text of a graph; what does not fit is one sentence.
#include "graph/graph.h"

#include <gtest/gtest.h>

#include "graph/describe.h"

namespace doppler::graph {
namespace {

// An embedding, q k v of a layer with a norm, attention, and the residual.
Graph small_graph() {
  Graph g;
  const Value x = g.embed(g.matrix(TensorId::kEmbedding, 0, 100, 64), 1.0f);
  const Value h = g.rms_norm(x, g.vector(TensorId::kAttentionNorm, 0, 64), 1e-5f);
  auto [q, k, v] = g.linear(h, {g.matrix(TensorId::kQ, 0, 64, 64), g.matrix(TensorId::kK, 0, 32, 64),
                                g.matrix(TensorId::kV, 0, 32, 64)});
  const Rope rope{.head_dim = 16, .rotary_dim = 8, .gpt_j_pairs = true};
  q = g.rope(g.head_norm(q, g.vector(TensorId::kQNorm, 0, 16), 1e-5f), rope);
  k = g.rope(k, rope);
  const Value y = g.attention(
      q, k, v, {.n_heads = 4, .n_kv_heads = 2, .head_dim = 16, .scale = 0.25f, .sliding_window = 8});
  g.add(x, g.linear(y, g.matrix(TensorId::kAttentionOut, 0, 64, 64)));
  return g;
}

TEST(Graph, IsReadableAsText) {
  const Graph g = small_graph();
  ASSERT_TRUE(g.error()) << g.error().error().sentence();
  EXPECT_EQ(describe(g),
            "%0 = embed() token_embd  [R, 64]\n"
            "%1 = rms_norm(%0) blk.0.attn_norm (eps 1e-05)  [R, 64]\n"
            "%2 %3 %4 = linear(%1) blk.0.attn_q blk.0.attn_k blk.0.attn_v  [R, 64] [R, 32] [R, 32]\n"
            "%5 = head_norm(%2) blk.0.attn_q_norm (eps 1e-05)  [R, 64]\n"
            "%6 = rope(%5) (table 0, 8 of 16, GPT-J pairs)  [R, 64]\n"
            "%7 = rope(%3) (table 0, 8 of 16, GPT-J pairs)  [R, 32]\n"
            "%8 = attention(%6, %7, %4) (4 heads on 2 of 16, scale 0.25, window 8)  [R, 64]\n"
            "%9 = linear(%8) blk.0.attn_output  [R, 64]\n"
            "%10 = add(%0, %9)  [R, 64]\n");
  EXPECT_EQ(g.nodes()[2].op_label, "blk.0.attn_qkv");
}

TEST(Graph, KnowsWhoReadsAValue) {
  const Graph g = small_graph();
  EXPECT_EQ(g.readers(Value{0}), (std::vector<uint32_t>{1, 8}));  // the norm, and the sum after attention
  EXPECT_EQ(g.readers(Value{10}), std::vector<uint32_t>());
}

// An embedding, layers that add a product to the residual stream, and a head. `skips`: the last layer adds a product of
// the embedding.
Graph layered_graph(bool skips) {
  Graph g;
  const Value first = g.embed(g.matrix(TensorId::kEmbedding, 0, 100, 64), 1.0f);
  g.mark_hidden(first);
  Value x = first;
  for (uint32_t i = 0; i < 3; ++i) {
    x = g.add(x, g.linear(skips && i == 2 ? first : x, g.matrix(TensorId::kAttentionOut, i, 64, 64)));
    g.mark_hidden(x);
  }
  g.set_logits(g.linear(x, g.matrix(TensorId::kOutput, 0, 100, 64)));
  return g;
}

TEST(Graph, IsCutBetweenLayers) {
  const Graph g = layered_graph(false);
  const auto begin = g.layers(0, 2), middle = g.layers(1, 2), end = g.layers(2, 3);
  ASSERT_TRUE(begin && middle && end);
  EXPECT_EQ(describe(*begin),
            "%0 = embed() token_embd  [R, 64]\n"
            "%1 = linear(%0) blk.0.attn_output  [R, 64]\n"
            "%2 = add(%0, %1)  [R, 64]\n"
            "%3 = linear(%2) blk.1.attn_output  [R, 64]\n"
            "%4 = add(%2, %3)  [R, 64]\n");
  EXPECT_EQ(begin->logits(), Value{4});
  EXPECT_EQ(middle->nodes().size(), 3u);
  EXPECT_EQ(describe(*end),
            "%0 = input() (0)  [R, 64]\n"
            "%1 = linear(%0) blk.2.attn_output  [R, 64]\n"
            "%2 = add(%0, %1)  [R, 64]\n"
            "%3 = linear(%2) output  [R, 100]\n");
  EXPECT_EQ(end->logits(), Value{3});
}

TEST(Graph, IsNotCutWhereALayerReadsMoreThanTheStream) {
  const Graph g = layered_graph(true);
  EXPECT_FALSE(g.layers(2, 3));
  const auto cut = g.layers(1, 3);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().sentence(),
            "The model cannot be split before layer 1: blk.2.attn_output reads token_embd.");
  EXPECT_TRUE(g.layers(0, 3));
}

TEST(Graph, DeclaresAWeightOnce) {
  Graph g;
  const Matrix first = g.matrix(TensorId::kOutput, 0, 10, 20),
               second = g.matrix(TensorId::kOutput, 0, 10, 20);
  EXPECT_EQ(first.index, second.index);
  ASSERT_TRUE(g.error());
  g.matrix(TensorId::kOutput, 0, 10, 21);
  ASSERT_FALSE(g.error());
  EXPECT_EQ(g.error().error().sentence(), "output is declared with two shapes.");
}

TEST(Graph, TellsTheFirstShapeThatDoesNotFit) {
  Graph g;
  const Value x = g.embed(g.matrix(TensorId::kEmbedding, 0, 100, 64), 1.0f);
  g.linear(x, g.matrix(TensorId::kDown, 3, 64, 65));
  g.add(x, g.rms_norm(x, g.vector(TensorId::kFinalNorm, 0, 63), 1e-5f));
  ASSERT_FALSE(g.error());
  EXPECT_EQ(g.error().error().sentence(), "blk.3.ffn_down has 65 columns and what it multiplies 64.");
}

}  // namespace
}  // namespace doppler::graph
