// The persistent kernel against the chain of dispatches, its twin, on the same layers: residual stream, begun norm and
// caches; in every format, dealt to one workgroup and to as many as run together; and the same bits 64 times.
#include "kernels/persistent/layers.h"

#include <cmath>
#include <cstring>
#include <memory>
#include <ostream>

#include "base/half.h"
#include "kernels/linear/test_weights.h"
#include "kernels/persistent/probe.h"
#include "kernels/rms_norm/rms_norm.h"

namespace doppler::kernels::testing {
namespace {

struct Case {
  uint32_t n_layers = 2, hidden = 64, ffn = 96, n_heads = 4, n_kv_heads = 2, head_dim = 16;
  WeightFormat format = WeightFormat::kTileQ4, other = WeightFormat::kTileQ6;
  uint32_t window = 0;
  bool interleaved = false;
  CacheFormat cache = CacheFormat::kF16;
  bool alone = false;       // one workgroup does all
  uint32_t dispatches = 1;  // the layers' weights lie in so many buffers

  uint32_t q() const { return n_heads * head_dim; }
  uint32_t kv() const { return n_kv_heads * head_dim; }
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.n_layers << " layers of " << c.hidden << ", ffn " << c.ffn << ", " << c.n_heads << " heads on "
       << c.n_kv_heads << " of " << c.head_dim << ", " << weight_format_info(c.format).name << " and "
       << weight_format_info(c.other).name << ", window " << c.window << ", " << c.dispatches
       << " dispatches";
}

constexpr uint32_t kContext = 96;
constexpr float kEps = 1e-5f;
// A value that rounds to the other of two 8-bit codes is 1/127 of its block's largest away, and in rows this short, with
// outliers, a few such values show. A wrong place or order of anything gives an error near 1.
constexpr double kMostError = 2e-2;

// Bytes of several tensors in one buffer, each at a binding's alignment.
struct Arena {
  std::vector<uint8_t> bytes;
  uint64_t add(std::span<const uint8_t> more) {
    const uint64_t at = (bytes.size() + 255) / 256 * 256;
    bytes.resize(at + more.size());
    std::memcpy(bytes.data() + at, more.data(), more.size());
    return at;
  }
};

struct TestLayer {
  std::vector<TestWeight> qkv;
  TestWeight out, gate_up, down;
};

// One set of layers, bound to a run in the way that both kernels take.
struct Model {
  explicit Model(const Case& shape) : c(shape) {
    for (uint32_t i = 0; i < c.n_layers; ++i) {
      const bool mixed = i % 2 == 1 && c.other != c.format;
      const uint64_t seed = 10 * i;
      TestLayer layer;
      if (mixed) {
        layer.qkv = {random_weight(c.format, c.q() + c.kv(), c.hidden, seed + 1),
                     random_weight(c.other, c.kv(), c.hidden, seed + 2)};
      } else {
        layer.qkv = {random_weight(c.format, c.q() + 2 * c.kv(), c.hidden, seed + 1)};
      }
      layer.out = random_weight(c.format, c.hidden, c.q(), seed + 3);
      layer.gate_up = random_weight(c.format, 2 * c.ffn, c.hidden, seed + 4);
      layer.down = random_weight(mixed ? c.other : c.format, c.hidden, c.ffn, seed + 5);
      layers.push_back(std::move(layer));
    }
  }
  Case c;
  std::vector<TestLayer> layers;
};

class Bound {
 public:
  Bound(KernelRun& run, const Model& model) : c_(model.c) {
    Arena norms;
    std::vector<Arena> arenas(c_.dispatches);
    struct Placed {
      Weight* weight;
      uint32_t arena;
      uint64_t at;
    };
    std::vector<Placed> places;
    uint32_t arena = 0;
    const auto place = [&](const TestWeight& weight) {
      weights_.push_back(
          std::make_unique<Weight>(Weight{.format = weight.format, .n = weight.n, .k = weight.k}));
      const std::vector<uint8_t> bytes = weight.piece(0, weight.n);
      places.push_back({weights_.back().get(), arena, arenas[arena].add(bytes)});
      weights_.back()->pieces = {{.buffer = {.bytes = bytes.size()}, .rows = weight.n}};
      return weights_.back().get();
    };
    std::vector<uint64_t> norm_places;
    for (uint32_t i = 0; i < 2 * c_.n_layers + 1; ++i) {
      std::vector<float> gains = random_floats(c_.hidden, 900 + i, 0.1f);
      for (float& gain : gains) gain = 1 + gain;
      norm_places.push_back(norms.add({reinterpret_cast<const uint8_t*>(gains.data()), gains.size() * 4}));
    }
    CacheView cache{
        .format = c_.cache, .n_kv_heads = c_.n_kv_heads, .ctx_len = kContext, .head_dim = c_.head_dim};
    const uint64_t cache_bytes = (cache.bytes() + 255) / 256 * 256;
    history_ = random_floats(cache_bytes * 2 * c_.n_layers / 4, 5, 0.5f);
    if (c_.cache == CacheFormat::kF16) {
      for (float& word : history_) {
        const uint16_t half = f32_to_f16(word);
        word = std::bit_cast<float>(half | uint32_t{half} << 16);
      }
    }
    cache_ = run.inout(history_);
    for (uint32_t i = 0; i < c_.n_layers; ++i) {
      const TestLayer& from = model.layers[i];
      arena = i * c_.dispatches / c_.n_layers;
      PersistentLayer layer;
      for (const TestWeight& part : from.qkv) layer.qkv.push_back(place(part));
      layer.out = place(from.out);
      layer.gate_up = place(from.gate_up);
      layer.down = place(from.down);
      cache.k = cache_.sub(2 * i * cache_bytes, cache_bytes);
      cache.v = cache_.sub((2 * i + 1) * cache_bytes, cache_bytes);
      layer.cache = cache;
      op.layers.push_back(layer);
    }
    const TensorView vectors = run.input(norms.bytes);
    std::vector<TensorView> all;
    for (const Arena& made : arenas) all.push_back(run.input(made.bytes));
    for (const Placed& placed : places) {
      TensorView& buffer = placed.weight->pieces[0].buffer;
      buffer = all[placed.arena].sub(placed.at, buffer.bytes);
    }
    const auto norm = [&](uint32_t i) { return vectors.sub(norm_places[i], c_.hidden * 4); };
    op.first_norm = norm(0);
    for (uint32_t i = 0; i < c_.n_layers; ++i) {
      op.layers[i].ffn_norm = norm(2 * i + 1);
      op.layers[i].next_norm = norm(2 * i + 2);
    }
    row_ = random_floats(c_.hidden, 77);
    op.row = run.inout(row_);
    op.next = {.buffer = run.output(BegunNorm::bytes(c_.hidden, true)),
               .weight = op.layers.back().next_norm,
               .k = c_.hidden,
               .eps = kEps,
               .q8 = true};
    op.n_heads = c_.n_heads;
    op.hidden_dim = c_.hidden;
    op.ffn_dim = c_.ffn;
    op.norm_eps = kEps;
    op.scale = 0.25f / std::sqrt(static_cast<float>(c_.head_dim));  // or one key takes all
    op.window = c_.window;
    std::vector<double> steps;
    for (uint32_t i = 0; i < c_.head_dim / 2; ++i) steps.push_back(std::pow(1e4, -2.0 * i / c_.head_dim));
    op.table = run.input(make_rope_table(steps));
    op.rotary_dim = c_.head_dim;
    op.interleaved = c_.interleaved;
  }

  void reset(KernelRun& run) {
    run.overwrite(op.row, row_);
    run.overwrite(cache_, history_);
  }
  std::vector<float> row(KernelRun& run) { return run.read<float>(op.row, c_.hidden); }
  std::vector<uint32_t> cache_words(KernelRun& run) { return run.read<uint32_t>(cache_, history_.size()); }
  std::vector<float> cache_values(KernelRun& run) {
    if (c_.cache == CacheFormat::kF32) return run.read<float>(cache_, history_.size());
    std::vector<float> values;
    for (const uint16_t bits : run.read<uint16_t>(cache_, history_.size() * 2))
      values.push_back(f16_to_f32(bits));
    return values;
  }

  PersistentLayers op;

 private:
  Case c_;
  std::vector<std::unique_ptr<Weight>> weights_;
  TensorView cache_;
  std::vector<float> history_, row_;
};

// The chain, from operations that have tests of their own.
Result<void> record_chain(Context& ctx, const Case& c, const PersistentLayers& op) {
  const auto floats = [&](const char* name, uint64_t n) { return ctx.plan.scratch(name, 4 * n); };
  const auto with_q8 = [&](const char* name, uint32_t k) {
    return Activation{.f32 = floats(name, k),
                      .q8 = ctx.plan.scratch(std::string(name) + "8", q8_bytes(1, k))};
  };
  Activation h = with_q8("h", c.hidden);
  const auto norm = [&](TensorView weight) {
    return record(ctx, RmsNorm{.x = op.row, .add = {}, .weight = weight, .y = h, .n = c.hidden, .eps = kEps});
  };
  DP_CHECK(norm(op.first_norm));
  for (const PersistentLayer& layer : op.layers) {
    const TensorView qkv = floats("qkv", c.q() + 2 * c.kv());
    uint32_t column = 0;
    for (const Weight* part : layer.qkv) {
      DP_CHECK(record(ctx, Linear{.weight = *part,
                                  .x = h,
                                  .y = qkv,
                                  .bias = {},
                                  .y_stride = c.q() + 2 * c.kv(),
                                  .y_column = column}));
      column += part->n;
    }
    const RopeKv rope{.qkv = qkv,
                      .q_out = floats("q", c.q()),
                      .cache = layer.cache,
                      .table = op.table,
                      .n_heads = c.n_heads,
                      .rotary_dim = op.rotary_dim,
                      .interleaved = op.interleaved};
    Attention attention{
        .q = rope.q_out, .cache = layer.cache, .y = with_q8("y", c.q()), .n_heads = c.n_heads};
    attention.scale = op.scale;
    attention.window = op.window;
    attention.rope = &rope;
    DP_CHECK(record(ctx, attention));
    DP_CHECK(record(ctx, Linear{.weight = *layer.out, .x = attention.y, .y = op.row, .accumulate = true}));
    DP_CHECK(norm(layer.ffn_norm));
    const Activation g = with_q8("g", c.ffn);
    DP_CHECK(
        record(ctx, Linear{.weight = *layer.gate_up, .x = h, .y = g.f32, .y_q8 = g.q8, .gate = op.activate}));
    DP_CHECK(record(ctx, Linear{.weight = *layer.down, .x = g, .y = op.row, .accumulate = true}));
    DP_CHECK(norm(layer.next_norm));
  }
  return {};
}

uint32_t together() {
  static const uint32_t count = [] {
    const auto counted = gpu::run_to_completion(device(), count_together(device()));
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
    bound.op.exchange = run.inout(std::vector<uint32_t>(exchange_bytes(bound.op) / 4));
    run.state.ctx_len = kContext;
    ready = run.record([&](Context& ctx) -> Result<void> {
      DP_TRY(const bool chosen, chooses_persistent(ctx, bound.op));
      if (!chosen)
        return fail(ErrorKind::kUnsupported, "%s", ctx.choices[ctx.chosen].refused.front().reason.c_str());
      return record(ctx, bound.op);
    });
  }
  uint32_t fault() { return run.read<uint32_t>(bound.op.exchange, 1)[0]; }

  // On a CPU the workgroups may be put aside for longer than its driver lets a loop wait: then again, which is no error of
  // the kernel. What failed there may have ended in the middle, so that its workgroups no longer count alike: nothing of
  // the exchange is kept.
  static uint32_t tries() { return device().caps().type == gpu::AdapterType::kCpu ? 2000 : 1; }
  void forget() { run.overwrite(bound.op.exchange, std::vector<uint32_t>(exchange_bytes(bound.op) / 4)); }

  // From the same beginning.
  void replay_once(uint32_t pos) {
    bound.reset(run);
    run.state.pos = pos;
    run.replay();
  }
  void replay(uint32_t pos) {
    for (uint32_t i = 0; i < tries(); ++i) {
      if (i > 0) forget();
      replay_once(pos);
      if (fault() == 0) return;
    }
  }
};

class PersistentLayersTest : public ::testing::TestWithParam<Case> {};

TEST_P(PersistentLayersTest, DoesTheSameAsTheChain) {
  const Case& c = GetParam();
  const Model model(c);
  KernelRun chain;
  Bound bound(chain, model);
  chain.state.ctx_len = kContext;
  ASSERT_TRUE(chain.record([&](Context& ctx) { return record_chain(ctx, c, bound.op); }));
  Persistent persistent(model, c.alone ? 1 : together());
  ASSERT_TRUE(persistent.ready);
  for (const uint32_t pos : {0u, 1u, 17u, 70u, kContext - 1}) {
    SCOPED_TRACE(pos);
    bound.reset(chain);
    chain.state.pos = pos;
    chain.replay();
    persistent.replay(pos);
    ASSERT_EQ(persistent.fault(), 0u);
    EXPECT_LT(rel_l2(persistent.bound.row(persistent.run), bound.row(chain)), kMostError);
    EXPECT_LT(rel_l2(persistent.bound.cache_values(persistent.run), bound.cache_values(chain)), kMostError);
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
             .alone = true}));

TEST(PersistentLayers, GiveTheSameBits64Times) {
  constexpr uint32_t kRuns = 64;
  const Case c{.n_layers = 3, .hidden = 256, .ffn = 320, .n_heads = 6, .n_kv_heads = 2, .head_dim = 64};
  const Model model(c);
  Persistent persistent(model, together());
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

// What an older dispatch left in the exchange has another tag, also after the tag has come round.
TEST(PersistentLayers, TagsComeRound) {
  const Case c{.n_layers = 3, .hidden = 256, .ffn = 320, .n_heads = 6, .n_kv_heads = 2, .head_dim = 64};
  const Model model(c);
  Persistent persistent(model, together());
  ASSERT_TRUE(persistent.ready);
  std::vector<float> once;
  for (uint32_t i = 0; i < Persistent::tries(); ++i) {
    if (i > 0) persistent.forget();
    persistent.replay(40);
    once = persistent.bound.row(persistent.run);
    for (uint32_t batch = 0; batch < 3; ++batch) persistent.run.replay(1, 100);
    persistent.replay_once(40);
    if (persistent.fault() == 0) break;
  }
  ASSERT_EQ(persistent.fault(), 0u);
  EXPECT_EQ(persistent.bound.row(persistent.run), once);
}

TEST(PersistentLayers, RefuseByName) {
  const Case c{.hidden = 256, .ffn = 320, .n_heads = 6, .n_kv_heads = 2, .head_dim = 64};
  const Model model(c);
  KernelRun run(*make_policy("persistent"));
  Bound bound(run, model);
  gpu::Caps large = device().caps();  // an H200's
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
                  .role = "test"};
      DP_TRY(const bool chosen, chooses_persistent(own, op));
      if (!chosen) said = choices.front().refused.front().reason;
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
  EXPECT_EQ(reason(op), "the probe found no workgroups that run together");
  op = bound.op;
  op.layers[1].has_bias = true;
  EXPECT_EQ(reason(op), "a product of layer 1 has a bias");
  op = bound.op;
  op.layers[1].gate_up = nullptr;
  EXPECT_EQ(reason(op), "gate and up of layer 1 have two formats");
  op = bound.op;
  for (PersistentLayer& layer : op.layers) layer.cache.ctx_len = 4096;
  EXPECT_EQ(reason(op), "one workgroup a head is too few for 4096 keys (up to 512)");
  op = bound.op;
  op.layers[1].next_norm = op.row;
  EXPECT_EQ(reason(op).substr(0, 56), "the norms of layer 1 do not lie within one binding (up t");
}

}  // namespace
}  // namespace doppler::kernels::testing
