// Decode attention that rotates q and fills the cache itself, against rope_kv and the portable row: same results, same
// cache, whichever workgroup has the newest key.
#include <cmath>
#include <map>

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
};

struct Outcome {
  std::vector<float> y, k, v;
};

class AttentionRopeTest : public ::testing::TestWithParam<Case> {
 protected:
  static std::vector<float> cache_values(KernelRun& run, const TensorView& view, const CacheView& cache) {
    if (cache.format == CacheFormat::kF32) return run.read<float>(view, cache.bytes() / 4);
    std::vector<float> values;
    for (const uint16_t bits : run.read<uint16_t>(view, cache.bytes() / 2))
      values.push_back(f16_to_f32(bits));
    return values;
  }

  static std::map<uint32_t, Outcome> outcomes(const Case& c, const std::string& variant) {
    Policy policy;
    policy.forced["attention_decode"] = variant;
    std::map<uint32_t, Outcome> found;
    for (const uint32_t pos : {0u, 1u, 63u, 64u, 200u, c.ctx_len - 1, c.ctx_len}) {
      KernelRun run(policy);
      const uint32_t heads = c.n_heads + 2 * c.n_kv_heads;
      CacheView cache{
          .format = c.format, .n_kv_heads = c.n_kv_heads, .ctx_len = c.ctx_len, .head_dim = c.head_dim};
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
      const RopeKv rope{.qkv = run.input(random_floats(size_t{heads} * c.head_dim, 6)),
                        .q_out = run.output(uint64_t{c.n_heads} * c.head_dim * 4),
                        .cache = cache,
                        .table = run.input(make_rope_table(steps)),
                        .n_heads = c.n_heads,
                        .rotary_dim = c.rotary_dim,
                        .interleaved = c.interleaved,
                        .attention_factor = 1.1f};
      Attention op{.q = rope.q_out, .cache = cache};
      op.y.f32 = run.output(uint64_t{c.n_heads} * c.head_dim * 4);
      op.n_heads = c.n_heads;
      op.scale = 1 / std::sqrt(static_cast<float>(c.head_dim));
      op.softcap = c.softcap;
      op.rope = &rope;
      run.state.ctx_len = c.ctx_len;
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return {};
      run.state.pos = pos;
      run.replay();
      found[pos] = {.y = run.read<float>(op.y.f32, size_t{c.n_heads} * c.head_dim),
                    .k = cache_values(run, cache.k, cache),
                    .v = cache_values(run, cache.v, cache)};
    }
    return found;
  }
};

std::vector<double> doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

TEST_P(AttentionRopeTest, DoesTheSameAsTwoKernels) {
  const std::map<uint32_t, Outcome> want = outcomes(GetParam(), "attention_decode.portable");
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

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionRopeTest,
                         ::testing::Values(Case{8, 2, 64, 64}, Case{4, 4, 64, 64, true},
                                           Case{6, 2, 128, 128, false, CacheFormat::kF32},
                                           Case{3, 1, 80, 32, false, CacheFormat::kF16, 70},
                                           Case{2, 1, 18, 10, true, CacheFormat::kF16, 70, 5},
                                           Case{4, 1, 256, 256}, Case{2, 1, 17, 0}));

}  // namespace
}  // namespace doppler::kernels::testing
