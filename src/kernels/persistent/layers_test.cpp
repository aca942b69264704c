// The persistent kernel against the chain of dispatches, its twin, on the same layers: residual stream, deferred norm
// and caches. In every format, dealt to one workgroup and to as many as are co-resident; and the same bits 64 times.
#include "kernels/persistent/layers.h"

#include "kernels/linear/record_linear.h"
#include "kernels/persistent/layers_case.h"
#include "kernels/persistent/probe.h"
#include "kernels/persistent/stages.h"
#include "kernels/persistent/test_stalls.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

// A value that rounds to the other of two 8-bit codes is 1/127 of its block's largest away, and in rows this short,
// with outliers, a few such values show. A wrong place or order of anything gives an error near 1.
constexpr double kMostError = 2e-2;

// The chain, from operations that have tests of their own.
Result<void> record_chain(Context& ctx, const Case& c, const PersistentLayers& op) {
  const auto floats = [&](const char* name, uint64_t n) { return ctx.plan.scratch(name, 4 * n); };
  const auto with_q8 = [&](const char* name, uint32_t k) {
    return Rows{.f32 = floats(name, k), .q8 = ctx.plan.scratch(std::string(name) + "8", q8_bytes(1, k))};
  };
  const Rows h = with_q8("h", c.hidden);
  const auto norm = [&](TensorView weight) {
    return record(ctx, RmsNorm{.x = op.row, .weight = weight, .y = h, .n = c.hidden, .eps = kEps});
  };
  // x += y W^T, or, if a norm follows the branch, x += norm(y W^T); then the norm that reads x.
  const auto join = [&](const Weight& weight, const Rows& y, TensorView bias, TensorView post_norm,
                        TensorView next) -> Result<void> {
    if (!post_norm.valid()) {
      DP_CHECK(
          record_linear(ctx, Linear{.weight = weight, .x = y, .bias = bias, .y = AddResidual{.y = op.row}}));
      return norm(next);
    }
    const TensorView branch = floats("branch", c.hidden);
    DP_CHECK(record_linear(ctx, Linear{.weight = weight, .x = y, .bias = bias, .y = Store{.y = branch}}));
    return record(ctx, AddBranch{.x = op.row,
                                 .branch = {.values = branch, .norm_weight = post_norm},
                                 .then = NormOfSum{.weight = next, .y = h},
                                 .n = c.hidden,
                                 .eps = kEps});
  };
  DP_CHECK(norm(op.first_norm));
  for (const PersistentLayer& layer : op.layers) {
    const TensorView qkv = floats("qkv", c.q() + 2 * c.kv());
    uint32_t column = 0;
    for (size_t i = 0; i < layer.qkv.size(); ++i) {
      const Store columns{.y = qkv, .y_stride = c.q() + 2 * c.kv(), .y_column = column};
      const TensorView bias = layer.qkv_bias.empty() ? TensorView{} : layer.qkv_bias[i];
      DP_CHECK(record_linear(ctx, Linear{.weight = *layer.qkv[i], .x = h, .bias = bias, .y = columns}));
      column += layer.qkv[i]->n;
    }
    const RopeKv rope{
        .qkv = qkv,
        .q_out = floats("q", c.q()),
        .cache = layer.cache,
        .table = layer.is_sliding ? op.sliding.table : op.table,
        .norms = layer.qk_norms,
        .norm_eps = op.norm_eps,
        .n_heads = c.n_heads,
        .rotary_dim = op.rotary_dim,
        .interleaved = op.interleaved,
        .attention_factor = layer.is_sliding ? op.sliding.attention_factor : op.attention_factor};
    Attention attention{.q = rope.q_out, .cache = layer.cache, .n_heads = c.n_heads};
    attention.scale = op.scale;
    attention.window = layer.is_sliding ? op.sliding.window : op.window;
    attention.softcap = op.softcap;
    attention.rope = &rope;
    const Rows y = with_q8("y", c.q());
    DP_TRY(const AttentionChoice chosen, resolve_attention(ctx, attention));
    DP_CHECK(record(ctx, chosen, attention, y));
    DP_CHECK(join(*layer.out, y, layer.out_bias, layer.post_attention_norm, layer.ffn_norm));
    const Rows g = with_q8("g", c.ffn);
    DP_CHECK(record_linear(ctx, Linear{.weight = *layer.gate_up,
                                       .x = h,
                                       .bias = layer.gate_up_bias,
                                       .y = Gate{.activation = op.activate, .y = g}}));
    DP_CHECK(join(*layer.down, g, layer.down_bias, layer.post_ffn_norm, layer.next_norm));
  }
  return {};
}

uint32_t co_resident() {
  static const uint32_t count = [] {
    const auto counted = gpu::run_to_completion(device(), count_co_resident(device()));
    return counted ? *counted : 1u;
  }();
  return count;
}

struct Persistent {
  KernelRun run;
  Bound bound;
  bool ready = false;

  Persistent(const Model& model, uint32_t groups) : run(*make_policy("persistent")), bound(run, model) {
    bound.op.groups = groups;
    bound.op.exchange = run.inout(std::vector<uint32_t>(exchange_bytes(bound.op, device().caps()) / 4));
    run.state.ctx_len = model.c.context;
    ready = run.record([&](Context& ctx) -> Result<void> {
      DP_TRY(const std::string reason, refuse_persistent_layers(ctx, bound.op));
      if (!reason.empty()) return fail(ErrorKind::kUnsupported, "%s", reason.c_str());
      return record(ctx, bound.op);
    });
  }
  uint32_t fault() { return run.read<uint32_t>(bound.op.exchange, 1)[0]; }

  // A stalled dispatch may have ended in the middle, so that its workgroups no longer count alike: the exchange is
  // zeroed.
  void forget() {
    run.overwrite(bound.op.exchange, std::vector<uint32_t>(exchange_bytes(bound.op, device().caps()) / 4));
  }

  // As if so many dispatches more had been.
  void count_on(uint32_t dispatches) {
    auto words = run.read<uint32_t>(bound.op.exchange, exchange_bytes(bound.op, device().caps()) / 4);
    for (uint32_t i = 0; i < 2 * bound.op.groups; ++i) words[kExchangeCounters + i] += dispatches;
    run.overwrite(bound.op.exchange, words);
  }

  // From the same beginning.
  bool replay_once(uint32_t pos) {
    bound.reset(run);
    run.state.pos = pos;
    run.replay();
    stalls().note(fault() != 0);
    return fault() == 0;
  }
  void replay(uint32_t pos) {
    for (uint32_t i = 0; i < Stalls::tries(); ++i) {
      if (i > 0) forget();
      if (replay_once(pos)) return;
    }
  }
};

// The input of other dispatches: the residual stream times the norm's weight in 8 bits, and its sums of squares.
void expect_deferred_norm(Bound& bound, KernelRun& run) {
  const uint32_t n = bound.op.hidden_dim;
  const std::vector<float> row = bound.row(run), gains = run.read<float>(bound.op.next.weight, n);
  std::vector<float> weighted, squares(n / kQ8Block);
  for (uint32_t i = 0; i < n; ++i) {
    weighted.push_back(row[i] * gains[i]);
    squares[i / kQ8Block] += row[i] * row[i];
  }
  const std::vector<uint8_t> q8 = run.read<uint8_t>(bound.op.next.buffer, q8_bytes(1, n));
  expect_q8(q8, weighted, 1, 1, n);
  const uint64_t sums = DeferredNorm::sums_offset(n, true);
  const std::vector<float> all = run.read<float>(bound.op.next.buffer, (sums + squares.size() * 4) / 4);
  EXPECT_LT(rel_l2(std::vector<float>(all.begin() + sums / 4, all.end()), squares), 1e-5);
}

// The values that the chain changed in the caches (a small part), and the other kernel's values in their places.
struct Newest {
  std::vector<float> want, got;
};
Newest newest_of(std::span<const float> before, std::span<const float> chain,
                 std::span<const float> persistent) {
  Newest newest;
  for (size_t i = 0; i < before.size(); ++i) {
    if (chain[i] == before[i]) continue;
    newest.want.push_back(chain[i]);
    newest.got.push_back(persistent[i]);
  }
  return newest;
}

class PersistentLayersTest : public ::testing::TestWithParam<Case> {};

TEST_P(PersistentLayersTest, DoesTheSameAsTheChain) {
  const Case& c = GetParam();
  const Model model(c);
  KernelRun chain;
  Bound bound(chain, model);
  chain.state.ctx_len = c.context;
  ASSERT_TRUE(chain.record([&](Context& ctx) { return record_chain(ctx, c, bound.op); }));
  Persistent persistent(model, c.alone ? 1 : co_resident());
  ASSERT_TRUE(persistent.ready);
  for (const uint32_t pos : {0u, 1u, 17u, 70u, c.context / 2, c.context - 1}) {
    SCOPED_TRACE(pos);
    bound.reset(chain);
    const std::vector<float> before = bound.cache_values(chain);
    chain.state.pos = pos;
    chain.replay();
    persistent.replay(pos);
    ASSERT_EQ(persistent.fault(), 0u);
    EXPECT_LT(rel_l2(persistent.bound.row(persistent.run), bound.row(chain)), kMostError);
    const std::vector<float> cache = persistent.bound.cache_values(persistent.run);
    EXPECT_LT(rel_l2(cache, bound.cache_values(chain)), kMostError);
    const Newest newest = newest_of(before, bound.cache_values(chain), cache);
    EXPECT_LT(rel_l2(newest.got, newest.want), kMostError);
    expect_deferred_norm(persistent.bound, persistent.run);
  }
}

// Few, since lavapipe takes half a minute to compile one.
INSTANTIATE_TEST_SUITE_P(
    Shapes, PersistentLayersTest,
    ::testing::Values(
        Case{.n_layers = 3, .hidden = 256, .ffn = 320, .n_heads = 6, .n_kv_heads = 2, .head_dim = 64},
        Case{.n_layers = 3,
             .hidden = 256,
             .ffn = 320,
             .n_heads = 6,
             .n_kv_heads = 2,
             .head_dim = 64,
             .dispatches = 2},
        Case{.hidden = 256,
             .ffn = 512,
             .n_heads = 2,
             .n_kv_heads = 1,
             .head_dim = 128,
             .format = WeightFormat::kTileQ8,
             .other = WeightFormat::kTileQ8,
             .window = 20,
             .interleaved = true,
             .cache = CacheFormat::kF32,
             .alone = true,
             .biases = true,
             .softcap = 2},
        Case{.n_heads = 6, .head_dim = 64, .context = 520},
        Case{.n_heads = 4,
             .n_kv_heads = 1,
             .head_dim = 96,
             .context = 520,
             .biases = true,
             .qk_norms = true,
             .post_norms = true,
             .sliding_window = 100},
        Case{.n_layers = 3,
             .hidden = 320,
             .head_dim = 64,
             .dispatches = 2,
             .qk_norms = true,
             .post_norms = true,
             .sliding_window = 20}));

// In short contexts and in long ones, of fewer values: the longer a dispatch is, the likelier a CPU puts a workgroup
// aside.
class PersistentContextTest : public ::testing::TestWithParam<Case> {};

TEST_P(PersistentContextTest, GivesTheSameBits64Times) {
  constexpr uint32_t kRuns = 64;
  const Case& c = GetParam();
  const Model model(c);
  Persistent persistent(model, co_resident());
  ASSERT_TRUE(persistent.ready);
  std::vector<float> first;
  std::vector<uint32_t> first_cache;
  for (uint32_t run = 0; run < kRuns; ++run) {
    persistent.replay(40);
    ASSERT_EQ(persistent.fault(), 0u);
    if (run == 0) {
      first = persistent.bound.row(persistent.run);
      first_cache = persistent.bound.cache_words(persistent.run);
    }
    ASSERT_EQ(persistent.bound.row(persistent.run), first) << run;
    ASSERT_EQ(persistent.bound.cache_words(persistent.run), first_cache) << run;
  }
}

// That it is so, since a word that one dispatch leaves out would be taken for the next one's with its tag.
TEST_P(PersistentContextTest, EveryDispatchWritesEveryWord) {
  const Case& c = GetParam();
  const Model model(c);
  Persistent persistent(model, co_resident());
  ASSERT_TRUE(persistent.ready);
  const ExchangeLayout at = exchange_layout(persistent.bound.op, device().caps());
  for (const uint32_t pos : {c.context - 1, 0u, 70u}) {
    persistent.replay(pos);
    ASSERT_EQ(persistent.fault(), 0u);
    const std::vector<uint32_t> words = persistent.run.read<uint32_t>(
        persistent.bound.op.exchange, exchange_bytes(persistent.bound.op, device().caps()) / 4);
    const uint32_t tag = words[at.counters] & 0xff;
    for (uint32_t layer = 0; layer < c.n_layers; ++layer) {
      for (uint32_t i = 0; i < at.words; ++i) {
        // The last layer's values go to other dispatches by other ways, unless a norm after it needs the whole row.
        if (!c.post_norms && layer + 1 == c.n_layers && i >= at.down && i < at.parts) continue;
        ASSERT_EQ(words[at.first + layer * at.words + i] >> 24, tag) << pos << " " << layer << " " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    ShortAndLong, PersistentContextTest,
    ::testing::Values(
        Case{.n_layers = 3, .hidden = 256, .ffn = 320, .n_heads = 6, .n_kv_heads = 2, .head_dim = 64},
        Case{.n_heads = 6, .head_dim = 64, .context = 520},
        Case{.n_layers = 3,
             .hidden = 320,
             .head_dim = 64,
             .qk_norms = true,
             .post_norms = true,
             .sliding_window = 20}));

// Words that an older dispatch left in the exchange have another tag, also after the tag has come round. On a CPU,
// where so many dispatches without a stall may take minutes, most are counted, not made.
TEST(PersistentLayers, TagsComeRound) {
  constexpr uint32_t kDispatches = 300, kMadeOnCpu = 50;  // a tag has 8 bits
  const Case c{.n_layers = 3, .hidden = 256, .ffn = 320, .n_heads = 6, .n_kv_heads = 2, .head_dim = 64};
  const Model model(c);
  Persistent persistent(model, co_resident());
  ASSERT_TRUE(persistent.ready);
  std::vector<float> once;
  for (uint32_t i = 0; i < Stalls::tries(); ++i) {
    if (i > 0) persistent.forget();
    persistent.replay(40);
    once = persistent.bound.row(persistent.run);
    uint32_t left = kDispatches;
    if (Stalls::is_cpu()) {
      persistent.count_on(kDispatches - kMadeOnCpu);
      left = kMadeOnCpu;
    }
    for (; left != 0; left -= kMadeOnCpu) persistent.run.replay(1, kMadeOnCpu);
    if (persistent.replay_once(40)) break;
  }
  ASSERT_EQ(persistent.fault(), 0u);
  EXPECT_EQ(persistent.bound.row(persistent.run), once);
}

TEST(PersistentLayers, RefuseByName) {
  const Case c{.hidden = 256, .ffn = 320, .n_heads = 6, .n_kv_heads = 2, .head_dim = 64};
  const Model model(c);
  KernelRun run(*make_policy("persistent"));
  Bound bound(run, model);
  gpu::Caps large = device().caps();
  large.type = gpu::AdapterType::kDiscrete;
  large.subgroup_min = large.subgroup_max = 32;
  large.max_invocations = large.max_workgroup_size_x = 1024;
  large.max_workgroup_bytes = 49152;
  gpu::PlanBuilder large_plan(large);
  bool is_large = false;
  const auto reason = [&](const PersistentLayers& op) -> std::string {
    std::string said;
    const Result<void> recorded = run.try_record([&](Context& ctx) -> Result<void> {
      std::vector<Choice> choices;  // equal ones are kept once, with the first's reasons
      Context own{.plan = is_large ? large_plan : ctx.plan,
                  .policy = ctx.policy,
                  .choices = choices,
                  .state = ctx.state,
                  .op_label = "test"};
      DP_TRY(said, refuse_persistent_layers(own, op));
      return {};
    });
    EXPECT_TRUE(recorded);
    return said;
  };
  bound.op.groups = 2;
  EXPECT_EQ(reason(bound.op), "");
  is_large = true;
  EXPECT_EQ(reason(bound.op), "");
  is_large = false;
  PersistentLayers op = bound.op;
  op.groups = 0;
  EXPECT_EQ(reason(op), "the probe found no workgroups that are co-resident");
  op = bound.op;
  op.layers[1].gate_up = nullptr;
  EXPECT_EQ(reason(op), "gate and up of layer 1 have two formats");
  op = bound.op;
  op.layers[1].next_norm = op.row;
  EXPECT_EQ(reason(op).substr(0, 62), "the norms and biases of layer 1 do not lie within one binding ");
  op = bound.op;
  op.layers[1].is_sliding = true;
  op.sliding.table = {};
  EXPECT_EQ(reason(op).substr(0, 61), "the rope tables of layer 1 do not lie within one binding (up ");
  op = bound.op;
  op.layers[1].out_bias = op.layers[1].qk_norms = op.first_norm;
  EXPECT_EQ(reason(op),
            "layer 1 has a bias of the output, norms of q and k where the first layer has nothing optional");
  op = bound.op;
  op.layers[1].post_attention_norm = op.first_norm;
  EXPECT_EQ(reason(op), "layer 1 has a norm after only one of its branches");
  op = bound.op;
  op.layers[0].qkv_bias = {op.first_norm, op.first_norm};
  EXPECT_EQ(reason(op), "q, k and v of layer 0 are 1 weights with 2 biases");
}

}  // namespace
}  // namespace doppler::kernels::testing
