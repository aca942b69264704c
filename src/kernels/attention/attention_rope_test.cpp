// Decode attention that rotates q and fills the cache itself, against rope_kv and the portable row: same results, same
// cache, whichever workgroup has the newest key.
#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>

#include "kernels/attention/attention_case.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

struct Case {
  uint32_t n_heads, n_kv_heads, head_dim, rotary_dim;
  bool interleaved = false;
  CacheFormat format = CacheFormat::kF16;
  uint32_t ctx_len = 300;
  float softcap = 0;
  bool norms = false;
  uint32_t window = 0, ring = 0;
  bool gated = false;
  bool norms_of_rows = false;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.n_heads << " heads on " << c.n_kv_heads << ", head_dim " << c.head_dim << ", rotary_dim "
       << c.rotary_dim << (c.interleaved ? ", interleaved" : "")
       << (c.format == CacheFormat::kF16 ? ", f16" : ", f32") << ", ctx_len " << c.ctx_len << ", softcap "
       << c.softcap << (c.norms ? ", norms" : "") << ", window " << c.window << ", ring " << c.ring
       << (c.gated ? ", gated" : "") << (c.norms_of_rows ? ", norms of rows" : "");
}

struct Outcome {
  std::vector<float> y, k, v;
};

constexpr const char* kPlain = "attention_decode.portable";
constexpr float kNormEps = 1e-2f;  // large, so that it shows

// x = x / sqrt(mean(x^2) + eps) * weight of `count` values.
void normalise(float* x, const float* weight, uint32_t count) {
  double squares = 0;
  for (uint32_t i = 0; i < count; ++i) squares += double{x[i]} * x[i];
  const double factor = 1 / std::sqrt(squares / count + kNormEps);
  for (uint32_t i = 0; i < count; ++i) x[i] = static_cast<float>(x[i] * factor * weight[i]);
}

class AttentionRopeTest : public ::testing::TestWithParam<Case> {
 protected:
  static std::vector<float> cache_values(KernelRun& run, const TensorView& view, const CacheView& cache) {
    if (cache.format == CacheFormat::kF32) return run.read<float>(view, cache.bytes() / 4);
    std::vector<float> values;
    for (const uint16_t bits : run.read<uint16_t>(view, cache.bytes() / 2))
      values.push_back(f16_to_f32(bits));
    return values;
  }

  // The plain variant has no gates and no norms of whole rows: this test computes them.
  static std::map<uint32_t, Outcome> outcomes(const Case& c, const std::string& variant) {
    Policy policy;
    policy.forced["attention_decode"] = variant;
    std::map<uint32_t, Outcome> found;
    KernelRun run(policy);
    const uint32_t heads = c.n_heads + 2 * c.n_kv_heads;
    CacheView cache{.format = c.format,
                    .n_kv_heads = c.n_kv_heads,
                    .ctx_len = c.ctx_len,
                    .head_dim = c.head_dim,
                    .ring_len = c.ring};
    std::vector<float> history = random_floats(cache.bytes() / 4, 5, 0.5f);
    if (c.format == CacheFormat::kF16) {  // two a word
      for (float& word : history) {
        const uint16_t half = f32_to_f16(word);
        const uint32_t both = half | uint32_t{half} << 16;
        word = std::bit_cast<float>(both);
      }
    }
    cache.k = run.inout(history);
    cache.v = run.inout(history);
    std::vector<double> steps;
    for (uint32_t i = 0; i < c.rotary_dim / 2; ++i) steps.push_back(std::pow(1e4, -2.0 * i / c.rotary_dim));
    const uint32_t q_dim = c.n_heads * c.head_dim, gates = c.gated ? q_dim : 0;
    std::vector<float> qkv = random_floats(gates, 8, 3.0f);  // before q, k and v
    for (const float value : random_floats(size_t{heads} * c.head_dim, 6)) qkv.push_back(value);
    const uint32_t k_dim = c.n_kv_heads * c.head_dim;
    const std::vector<float> norms = random_floats(c.norms_of_rows ? q_dim + k_dim : 2 * c.head_dim, 7);
    const bool is_normed = c.norms_of_rows && variant == kPlain;
    if (is_normed) {
      normalise(&qkv[gates], norms.data(), q_dim);
      normalise(&qkv[gates + q_dim], &norms[q_dim], k_dim);
    }
    const RopeKv rope{.qkv = run.input(qkv),
                      .q_out = run.output(uint64_t{c.n_heads} * c.head_dim * 4),
                      .cache = cache,
                      .table = run.input(make_rope_table(steps)),
                      .norms = c.norms && !is_normed ? run.input(norms) : TensorView{},
                      .norms_of_rows = c.norms_of_rows && !is_normed,
                      .norm_eps = kNormEps,
                      .n_heads = c.n_heads,
                      .stride = static_cast<uint32_t>(qkv.size()),
                      .column = gates,
                      .rotary_dim = c.rotary_dim,
                      .interleaved = c.interleaved,
                      .attention_factor = 1.1f};
    Attention op{.q = rope.q_out, .cache = cache};
    const Rows y{.f32 = run.output(uint64_t{c.n_heads} * c.head_dim * 4)};
    op.n_heads = c.n_heads;
    op.scale = 1 / std::sqrt(static_cast<float>(c.head_dim));
    op.softcap = c.softcap;
    op.window = c.window;
    op.rope = &rope;
    const bool gates_itself = c.gated && variant != kPlain;
    if (gates_itself) op.gate_column = 0;
    run.state.ctx_len = c.ctx_len;
    if (!run.record([&](Context& ctx) { return record_attention(ctx, op, y); })) return {};
    for (const uint32_t pos : {0u, 1u, 63u, 64u, 200u, c.ctx_len - 1, c.ctx_len}) {
      run.overwrite(cache.k, history);
      run.overwrite(cache.v, history);
      run.state.pos = pos;
      run.replay();
      found[pos] = {.y = run.read<float>(y.f32, size_t{c.n_heads} * c.head_dim),
                    .k = cache_values(run, cache.k, cache),
                    .v = cache_values(run, cache.v, cache)};
      for (uint32_t i = 0; i < gates && !gates_itself; ++i) found[pos].y[i] /= 1 + std::exp(-qkv[i]);
    }
    return found;
  }
};

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

TEST_P(AttentionRopeTest, DoesTheSameAsTwoKernels) {
  const std::map<uint32_t, Outcome> want = outcomes(GetParam(), kPlain);
  ASSERT_FALSE(want.empty());
  for (const char* variant : {"attention_decode.rope.single", "attention_decode.rope.split"}) {
    SCOPED_TRACE(variant);
    for (const auto& [pos, got] : outcomes(GetParam(), variant)) {
      SCOPED_TRACE(pos);
      EXPECT_LT(rel_l2(got.y, doubles(want.at(pos).y)),
                1e-4);  // a cache value may round to its f16 neighbour
      EXPECT_LT(rel_l2(got.k, doubles(want.at(pos).k)), 1e-5);
      EXPECT_EQ(got.v, want.at(pos).v);
    }
  }
}

// Long heads with the cache in f16 only: with subgroups of four lavapipe takes a minute and a half for one in f32.
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionRopeTest,
                         ::testing::Values(Case{8, 2, 64, 64}, Case{4, 4, 64, 64, true},
                                           Case{6, 2, 32, 32, false, CacheFormat::kF32},
                                           Case{3, 1, 80, 32, false, CacheFormat::kF16, 70},
                                           Case{2, 1, 18, 10, true, CacheFormat::kF16, 70, 5},
                                           Case{4, 1, 256, 256}, Case{2, 1, 17, 0}));

constexpr Case normed(Case c, uint32_t window = 0, uint32_t ring = 0) {
  c.norms = true;
  c.window = window;
  c.ring = ring;
  return c;
}
INSTANTIATE_TEST_SUITE_P(Norms, AttentionRopeTest,
                         ::testing::Values(normed({4, 1, 256, 256}), normed({4, 1, 256, 256}, 64),
                                           normed({5, 1, 128, 128}),
                                           normed({4, 2, 64, 32, true, CacheFormat::kF16, 300, 5}),
                                           normed({2, 1, 17, 8, false, CacheFormat::kF16, 70}),
                                           normed({1, 1, 512, 512, false, CacheFormat::kF16, 70}),
                                           normed({2, 1, 17, 8}, 64, 96)));

constexpr Case gated(Case c) {
  c.norms = c.gated = true;
  return c;
}
INSTANTIATE_TEST_SUITE_P(Gates, AttentionRopeTest,
                         ::testing::Values(gated({4, 2, 64, 32}),
                                           gated({4, 2, 17, 8, false, CacheFormat::kF16, 70})));

constexpr Case normed_rows(Case c) {
  c.norms = c.norms_of_rows = true;
  return c;
}
INSTANTIATE_TEST_SUITE_P(NormsOfRows, AttentionRopeTest,
                         ::testing::Values(normed_rows({2, 2, 64, 64, false, CacheFormat::kF16, 70}),
                                           normed_rows({6, 2, 17, 8, false, CacheFormat::kF16, 70})));

TEST(AttentionRope, RefusesWhatWorkgroupMemoryDoesNotHold) {
  gpu::Caps caps;
  caps.subgroup_min = caps.subgroup_max = 32;
  caps.max_invocations = 256;
  caps.max_workgroup_bytes = 16384;  // WebGPU's default
  const RopeKv rope;
  Attention op{.n_heads = 4, .rope = &rope};
  op.cache = {.n_kv_heads = 1, .ctx_len = 4096, .head_dim = 256};
  const auto row = std::ranges::find(attention_decode_variants(), "attention_decode.rope.split",
                                     &AttentionDecodeRow::name);
  EXPECT_EQ(row->refuse(op, caps), "");
  op.cache.head_dim = 512;
  op.cache.format = CacheFormat::kF32;
  EXPECT_EQ(row->refuse(op, caps), "it needs 18496 bytes of workgroup memory, this device has 16384");
}

TEST(AttentionRope, NormsAndSinksShareABinding) {
  Policy policy;
  policy.forced["attention_decode"] = "attention_decode.rope.split";
  KernelRun run(policy);
  const CacheView cache{.n_kv_heads = 1, .ctx_len = 16, .head_dim = 64};
  const TensorView some = run.output(4096);
  const RopeKv rope{.qkv = some, .q_out = some, .cache = cache, .norms = some, .n_heads = 1};
  Attention op{.q = some, .cache = cache, .n_heads = 1, .scale = 1, .sinks = some, .rope = &rope};
  op.cache.k = op.cache.v = some;
  const Result<void> recorded =
      run.try_record([&](Context& ctx) { return record_attention(ctx, op, {.f32 = some}); });
  ASSERT_FALSE(recorded);
  EXPECT_NE(recorded.error().sentence().find("sinks and norms of q and k share a binding"), std::string::npos)
      << recorded.error().sentence();
}

}  // namespace
}  // namespace doppler::kernels::testing
