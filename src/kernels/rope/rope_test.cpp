// Tests rope_kv against double precision: rotation styles, odd head sizes, partial rotation, normalised heads, both
// cache formats, long contexts, rows past the end of the cache; and just the sines at every octant.
#include <cmath>
#include <numbers>

#include "base/half.h"
#include "kernels/rope/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

std::vector<double> plain_frequencies(uint32_t rotary_dim, double theta) {
  std::vector<double> frequencies;
  for (uint32_t i = 0; i < rotary_dim / 2; ++i) frequencies.push_back(std::pow(theta, -2.0 * i / rotary_dim));
  return frequencies;
}

double turned(const float* head, uint32_t d, uint32_t rotary_dim, bool interleaved, double angle_step,
              uint32_t pos, double factor) {
  const uint32_t half = rotary_dim / 2;
  const bool second = interleaved ? d % 2 == 1 : d >= half;
  const uint32_t partner = interleaved ? d ^ 1u : (second ? d - half : d + half);
  const long double angle = static_cast<long double>(angle_step) * pos;
  const auto c = static_cast<double>(std::cos(angle)), s = static_cast<double>(std::sin(angle));
  return factor * (head[d] * c + (second ? head[partner] : -head[partner]) * s);
}

struct Case {
  uint32_t n_heads, n_kv_heads, head_dim, rotary_dim;
  bool interleaved;
  CacheFormat format;
  uint32_t pos, rows, ctx_len;
  float factor = 1.0f;
  bool norms = false;
};
constexpr float kEps = 1e-5f;

// Heads of q and k are normalised, those of v are not.
std::vector<float> normalised(const Case& c, std::vector<float> qkv, const std::vector<float>& q_norm,
                              const std::vector<float>& k_norm) {
  const uint32_t heads = c.n_heads + 2 * c.n_kv_heads;
  for (size_t begin = 0; begin < qkv.size(); begin += c.head_dim) {
    const size_t head = begin / c.head_dim % heads;
    if (head >= c.n_heads + c.n_kv_heads) continue;
    double squares = 0;
    for (size_t d = 0; d < c.head_dim; ++d) squares += double{qkv[begin + d]} * qkv[begin + d];
    const double scale = 1 / std::sqrt(squares / c.head_dim + double{kEps});
    for (size_t d = 0; d < c.head_dim; ++d) {
      const double weight = head < c.n_heads ? q_norm[d] : k_norm[d];
      qkv[begin + d] = static_cast<float>(qkv[begin + d] * scale * weight);
    }
  }
  return qkv;
}

class RopeKvTest : public ::testing::TestWithParam<Case> {};

TEST_P(RopeKvTest, EveryVariantMatchesTheOracle) {
  const Case c = GetParam();
  constexpr uint32_t kMaxRows = 4;
  const uint32_t heads = c.n_heads + 2 * c.n_kv_heads;
  const std::vector<float> qkv = random_floats(size_t{kMaxRows} * heads * c.head_dim, 11);
  const std::vector<float> q_norm = random_floats(c.head_dim, 12), k_norm = random_floats(c.head_dim, 13);
  const std::vector<float> before = c.norms ? normalised(c, qkv, q_norm, k_norm) : qkv;
  const std::vector<double> frequencies = plain_frequencies(c.rotary_dim, 10000);
  for_each_variant("rope_kv", rope_kv_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    RopeKv op{.qkv = run.input(qkv),
              .n_heads = c.n_heads,
              .rotary_dim = c.rotary_dim,
              .interleaved = c.interleaved,
              .attention_factor = c.factor};
    op.cache = {.format = c.format, .n_kv_heads = c.n_kv_heads, .ctx_len = c.ctx_len, .head_dim = c.head_dim};
    op.cache.k = run.output(op.cache.bytes());
    op.cache.v = run.output(op.cache.bytes());
    op.q_out = run.output(uint64_t{kMaxRows} * c.n_heads * c.head_dim * 4);
    if (c.norms) {
      std::vector<float> norms = q_norm;
      norms.insert(norms.end(), k_norm.begin(), k_norm.end());
      op.norms = run.input(norms);
      op.norm_eps = kEps;
    }
    if (c.rotary_dim > 0) op.table = run.input(make_rope_table(frequencies));
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.state.pos = c.pos;
    run.replay(c.rows);

    const auto rotated = [&](uint32_t row, uint32_t head, uint32_t d) -> double {
      const float* from = &before[(size_t{row} * heads + head) * c.head_dim];
      if (d >= c.head_dim) return 0;
      if (d >= c.rotary_dim || head >= c.n_heads + c.n_kv_heads) return from[d];
      const double step = frequencies[c.interleaved ? d / 2 : d % (c.rotary_dim / 2)];
      return turned(from, d, c.rotary_dim, c.interleaved, step, c.pos + row, c.factor);
    };
    std::vector<double> want_q;
    for (uint32_t row = 0; row < c.rows; ++row) {
      for (uint32_t head = 0; head < c.n_heads; ++head) {
        for (uint32_t d = 0; d < c.head_dim; ++d) want_q.push_back(rotated(row, head, d));
      }
    }
    EXPECT_LT(rel_l2(run.read<float>(op.q_out, want_q.size()), want_q), 1e-6);

    const bool f16 = c.format == CacheFormat::kF16;
    const uint32_t padded = op.cache.padded_head_dim();
    for (const bool value : {false, true}) {
      const TensorView view = value ? op.cache.v : op.cache.k;
      std::vector<float> got;
      std::vector<double> want;
      const std::vector<uint8_t> bytes = run.read<uint8_t>(view, op.cache.bytes());
      for (uint32_t head = 0; head < c.n_kv_heads; ++head) {
        for (uint32_t pos = 0; pos < c.ctx_len; ++pos) {
          for (uint32_t d = 0; d < padded; ++d) {
            const size_t at = (size_t{head} * c.ctx_len + pos) * padded + d;
            uint32_t bits = 0;
            std::memcpy(&bits, &bytes[at * (f16 ? 2 : 4)], f16 ? 2 : 4);
            if (pos < c.pos || pos >= c.pos + c.rows) {
              const uint32_t poison = f16 ? (d % 2 ? kPoison >> 16 : kPoison & 0xFFFF) : kPoison;
              ASSERT_EQ(bits, poison) << "position " << pos << " was not part of the step";
              continue;
            }
            const double exact = rotated(pos - c.pos, c.n_heads + (value ? c.n_kv_heads : 0) + head, d);
            if (d >= c.head_dim) {
              ASSERT_EQ(bits, 0u) << "padding";
            }
            if (value && f16) {
              ASSERT_EQ(bits, f32_to_f16(static_cast<float>(exact))) << "nearest even";
            }
            got.push_back(f16 ? f16_to_f32(static_cast<uint16_t>(bits)) : std::bit_cast<float>(bits));
            want.push_back(exact);
          }
        }
      }
      EXPECT_LT(rel_l2(got, want), f16 ? 5e-4 : 1e-6);  // half a unit in the last place of f16: 2^-11
    }
  });
}

constexpr CacheFormat kF16 = CacheFormat::kF16, kF32 = CacheFormat::kF32;
INSTANTIATE_TEST_SUITE_P(
    Shapes, RopeKvTest,
    ::testing::Values(Case{4, 2, 64, 64, false, kF16, 3, 2, 8}, Case{4, 2, 64, 64, true, kF32, 3, 2, 8},
                      Case{3, 1, 18, 18, false, kF16, 0, 4, 5}, Case{3, 3, 18, 10, true, kF16, 5, 1, 7},
                      Case{2, 1, 17, 8, false, kF16, 1, 2, 4}, Case{2, 1, 17, 16, false, kF32, 1, 2, 4},
                      Case{1, 1, 1, 0, false, kF16, 0, 1, 1}, Case{2, 1, 80, 32, false, kF16, 0, 3, 3, 1.2f},
                      Case{8, 1, 256, 256, false, kF16, 130, 2, 140},
                      // Rows 2 and 3 lie past the end of the cache; q is still made for them.
                      Case{2, 2, 16, 16, false, kF16, 4, 4, 6}, Case{2, 2, 16, 16, false, kF32, 9, 2, 6},
                      // Normalised heads.
                      Case{4, 1, 256, 256, false, kF16, 3, 2, 8, 1.0f, true},
                      Case{4, 2, 64, 64, true, kF32, 3, 4, 8, 1.2f, true},
                      Case{3, 1, 18, 10, false, kF32, 5, 2, 7, 1.0f, true},
                      Case{2, 2, 17, 8, false, kF16, 1, 2, 4, 1.0f, true}));

// Rows on three axes, and rows after a picture: each pair turns by the sum of the row's position and what is added.
TEST(RopeKv, PairsTurnByTheirAxes) {
  constexpr uint32_t kRows = 3, kHeadDim = 20, kPairs = kHeadDim / 2, kPos = 5, kCtxLen = 9,
                     kShift = UINT32_MAX - 2;
  const std::vector<float> qkv = random_floats(size_t{kRows} * 3 * kHeadDim, 21);
  const std::vector<double> frequencies = plain_frequencies(kHeadDim, 10000);
  // For each row: time, height, width and a 0. Those of the second row stand for less than 0.
  const std::vector<uint32_t> added = {0, 2, 7, 0, UINT32_MAX - 3, UINT32_MAX, 4, 0, 1, 1, 1, 0};
  for (const RopeAxes axes : {RopeAxes{4, 3, 3, false}, RopeAxes{4, 3, 3, true}, RopeAxes{}}) {
    const bool is_shifted = axes == RopeAxes{};
    for_each_variant("rope_kv", rope_kv_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kRows);
      RopeKv op{.qkv = run.input(qkv), .n_heads = 1, .rotary_dim = kHeadDim};
      op.places = is_shifted ? RopePlaces::kShifted : RopePlaces::kAxes;
      op.axes = axes;
      op.cache = {.format = CacheFormat::kF32, .n_kv_heads = 1, .ctx_len = kCtxLen, .head_dim = kHeadDim};
      op.cache.k = run.output(op.cache.bytes());
      op.cache.v = run.output(op.cache.bytes());
      op.q_out = run.output(uint64_t{kRows} * kHeadDim * 4);
      std::vector<uint32_t> table = make_rope_table(frequencies);
      if (is_shifted) table.insert(table.end(), {kShift, 0u});
      table.insert(table.end(), added.begin(), added.end());
      op.table = run.input(table);
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.state.pos = kPos;
      run.replay(kRows);
      std::vector<double> want;
      for (uint32_t row = 0; row < kRows; ++row) {
        for (uint32_t d = 0; d < kHeadDim; ++d) {
          const uint32_t pair = d % kPairs;
          uint32_t axis = pair < axes.time ? 0 : pair < axes.time + axes.height ? 1 : 2;
          if (axes.interleaved) axis = pair < 9 ? pair % 3 : 0;
          const uint32_t place = kPos + row + (is_shifted ? kShift : added[4 * row + axis]);
          want.push_back(
              turned(&qkv[size_t{row} * 3 * kHeadDim], d, kHeadDim, false, frequencies[pair], place, 1));
        }
      }
      EXPECT_LT(rel_l2(run.read<float>(op.q_out, want.size()), want), 1e-6);
    });
  }
}

// q = (1, 0) for every pair turns into (cos, sin): only the sines and the fixed-point phase, up to the longest
// contexts. The bound is absolute: 3e-7 from the polynomials and f32, 1e-9 from the phase.
TEST(RopeKv, SinesStayAccurateAtAMillionPositions) {
  constexpr uint32_t kHeadDim = 128, kPairs = kHeadDim / 2;
  for (const double theta : {10000.0, 500000.0}) {
    const std::vector<double> frequencies = plain_frequencies(kHeadDim, theta);
    std::vector<float> qkv(3 * kHeadDim);
    for (uint32_t i = 0; i < kPairs; ++i) qkv[i] = 1;
    KernelRun run;
    RopeKv op{.qkv = run.input(qkv), .n_heads = 1, .rotary_dim = kHeadDim};
    op.cache = {.format = kF32, .n_kv_heads = 1, .ctx_len = 1, .head_dim = kHeadDim};
    op.cache.k = run.output(op.cache.bytes());
    op.cache.v = run.output(op.cache.bytes());
    op.q_out = run.output(kHeadDim * 4);
    op.table = run.input(make_rope_table(frequencies));
    ASSERT_TRUE(run.record([&](Context& ctx) { return record(ctx, op); }));
    for (const uint32_t pos : {0u, 1u, 2u, 7u, 1000u, 8191u, 131071u, 999983u, 1000000u}) {
      run.state.pos = pos;
      run.replay();
      const std::vector<float> got = run.read<float>(op.q_out, kHeadDim);
      for (uint32_t i = 0; i < kPairs; ++i) {
        const long double angle = static_cast<long double>(frequencies[i]) * pos;
        ASSERT_NEAR(got[i], static_cast<double>(std::cos(angle)), 4e-7)
            << "position " << pos << " pair " << i;
        ASSERT_NEAR(got[kPairs + i], static_cast<double>(std::sin(angle)), 4e-7)
            << "position " << pos << " pair " << i;
      }
    }
  }
}

struct BlocksCase {
  uint32_t n_heads, n_kv_heads, head_dim, rotary_dim;
  bool interleaved, norms;
};

// q and the cache in f32 say what a cache in q8_0 is made of: the other formats' test holds them against the oracle.
TEST(RopeKv, BlocksHoldWhatTheF32CacheHolds) {
  constexpr uint32_t kRows = 3, kPos = 2, kCtx = 5;
  for (const BlocksCase& c :
       {BlocksCase{2, 1, 64, 64, false, false}, BlocksCase{3, 3, 96, 40, true, true},
        BlocksCase{1, 2, 32, 0, false, false}, BlocksCase{2, 1, 256, 256, false, true}}) {
    SCOPED_TRACE(c.head_dim);
    const uint32_t heads = c.n_heads + 2 * c.n_kv_heads;
    std::vector<float> qkv = random_floats(size_t{kRows} * heads * c.head_dim, 11);
    // The first block of the last head, a value, is nothing but zeros.
    std::fill_n(qkv.begin() + static_cast<ptrdiff_t>((heads - 1) * c.head_dim), kCacheBlock, 0.0f);
    const std::vector<float> norms = random_floats(2 * c.head_dim, 12);
    const std::vector<double> frequencies = plain_frequencies(c.rotary_dim, 10000);
    const auto made = [&](CacheFormat format) {
      KernelRun run({}, kRows);
      RopeKv op{.qkv = run.input(qkv),
                .n_heads = c.n_heads,
                .rotary_dim = c.rotary_dim,
                .interleaved = c.interleaved};
      op.cache = {.format = format, .n_kv_heads = c.n_kv_heads, .ctx_len = kCtx, .head_dim = c.head_dim};
      op.cache.k = run.output(op.cache.bytes());
      op.cache.v = run.output(op.cache.bytes());
      op.q_out = run.output(uint64_t{kRows} * c.n_heads * c.head_dim * 4);
      if (c.norms) op.norms = run.input(norms);
      if (c.rotary_dim > 0) op.table = run.input(make_rope_table(frequencies));
      EXPECT_TRUE(run.record([&](Context& ctx) { return record(ctx, op); }));
      run.state.pos = kPos;
      run.replay(kRows);
      return std::array{run.read<uint8_t>(op.q_out, uint64_t{kRows} * c.n_heads * c.head_dim * 4),
                        run.read<uint8_t>(op.cache.k, op.cache.bytes()),
                        run.read<uint8_t>(op.cache.v, op.cache.bytes())};
    };
    const auto f32 = made(kF32), q8_0 = made(CacheFormat::kQ8_0);
    const auto floats = [](const std::vector<uint8_t>& bytes) {
      std::vector<float> values(bytes.size() / 4);
      std::memcpy(values.data(), bytes.data(), bytes.size());
      return values;
    };
    const std::vector<float> q = floats(f32[0]);
    EXPECT_LT(rel_l2(floats(q8_0[0]), std::vector<double>(q.begin(), q.end())), 1e-6);
    const uint64_t row_bytes = CacheView{.format = CacheFormat::kQ8_0, .head_dim = c.head_dim}.row_bytes();
    for (const size_t side : {1, 2}) {
      const std::vector<float> want = floats(f32[side]);
      for (uint32_t row = 0; row < c.n_kv_heads * kCtx; ++row) {
        const uint8_t* bytes = &q8_0[side][row * row_bytes];
        const bool is_written = row % kCtx >= kPos;
        for (uint32_t d = 0; d < c.head_dim; ++d) {
          uint16_t bits = 0;
          std::memcpy(&bits, bytes + c.head_dim + d / kCacheBlock * 2, 2);
          if (!is_written) {
            uint32_t word = 0;
            std::memcpy(&word, bytes + d / 4 * 4, 4);
            ASSERT_EQ(word, kPoison) << "position " << row % kCtx << " was not part of the step";
            continue;
          }
          const double scale = double{f16_to_f32(bits)};
          const float* block = &want[size_t{row} * c.head_dim + d / kCacheBlock * kCacheBlock];
          double largest = 0;
          for (uint32_t i = 0; i < kCacheBlock; ++i) largest = std::max(largest, std::abs(double{block[i]}));
          ASSERT_NEAR(scale, largest / 127, largest / 127 / 2000);  // f16, and divisions of 2.5 units
          // Half a step, and of a byte of 127 what the scale was rounded by.
          const double value = scale * static_cast<int8_t>(bytes[d]);
          ASSERT_NEAR(value, double{block[d % kCacheBlock]}, scale * (0.501 + 127.0 / 2000))
              << "dimension " << d;
        }
      }
    }
  }
}

TEST(RopeKv, BlocksWantWholeHeads) {
  KernelRun run;
  RopeKv op{.n_heads = 1};
  op.cache = {.format = CacheFormat::kQ8_0, .n_kv_heads = 1, .ctx_len = 1, .head_dim = 80};
  const Result<void> recorded = run.try_record([&](Context& ctx) { return record(ctx, op); });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().sentence(),
            "Head dimension (80) is not a multiple of the q8_0 cache's block (32).");
}

TEST(RopeKv, TableHoldsTurnsInFixedPoint) {
  const std::vector<double> frequencies = {2 * std::numbers::pi * 0.75, 2 * std::numbers::pi * 0x1p-40};
  EXPECT_EQ(make_rope_table(frequencies), (std::vector<uint32_t>{0, 0xC0000000u, 1u << 24, 0}));
}

}  // namespace
}  // namespace doppler::kernels::testing
