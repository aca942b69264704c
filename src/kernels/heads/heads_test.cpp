// Tests head_norm and rotate against double precision, among other columns that must not change: heads and whole rows,
// both pairings, part of a head, scaling by position.
#include <cmath>

#include "kernels/heads/variants.h"
#include "kernels/rope/rope.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kMaxRows = 3, kRows = 2;

struct Case {
  uint32_t n_heads, head_dim, column, stride;
  uint32_t rotary_dim = 0;
  bool interleaved = false;
  float beta = 0;
  uint32_t pos = 0;
  bool is_plain = false;  // without a weight
};

HeadColumns heads_of(const Case& c, TensorView x) {
  return {.x = x, .stride = c.stride, .column = c.column, .n_heads = c.n_heads, .head_dim = c.head_dim};
}

// Compares the heads of the first rows with want(row, head, d), and everything else with what was there.
template <class Want>
void expect_heads(const Case& c, const std::vector<float>& before, const std::vector<float>& got, Want want) {
  std::vector<float> got_heads;
  std::vector<double> want_heads;
  for (uint32_t row = 0; row < kMaxRows; ++row) {
    for (uint32_t i = 0; i < c.stride; ++i) {
      const size_t at = size_t{row} * c.stride + i;
      const bool is_head = row < kRows && i >= c.column && i < c.column + c.n_heads * c.head_dim;
      if (!is_head) {
        ASSERT_EQ(got[at], before[at]) << "row " << row << ", column " << i;
        continue;
      }
      got_heads.push_back(got[at]);
      want_heads.push_back(want(row, (i - c.column) / c.head_dim, (i - c.column) % c.head_dim));
    }
  }
  EXPECT_LT(rel_l2(got_heads, want_heads), 1e-6);
}

TEST(HeadNorm, EveryVariantMatchesTheOracle) {
  for (const Case& c : {Case{3, 20, 5, 70}, Case{1, 1030, 0, 1100},
                        Case{.n_heads = 2, .head_dim = 12, .column = 4, .stride = 30, .is_plain = true}}) {
    const std::vector<float> x = random_floats(size_t{kMaxRows} * c.stride, 1),
                             weight = c.is_plain ? std::vector<float>(c.head_dim, 1.0f)
                                                 : random_floats(c.head_dim, 2);
    for_each_variant("head_norm", head_norm_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kMaxRows);
      const HeadNorm op{.heads = heads_of(c, run.inout(x)),
                        .weight = c.is_plain ? TensorView{} : run.input(weight),
                        .eps = 1e-5f};
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.replay(kRows);
      expect_heads(c, x, run.read<float>(op.heads.x, x.size()), [&](uint32_t row, uint32_t head, uint32_t d) {
        const float* from = &x[size_t{row} * c.stride + c.column + head * c.head_dim];
        double squares = 0;
        for (uint32_t i = 0; i < c.head_dim; ++i) squares += double{from[i]} * from[i];
        return from[d] / std::sqrt(squares / c.head_dim + double{op.eps}) * double{weight[d]};
      });
    });
  }
}

TEST(Rotate, EveryVariantMatchesTheOracle) {
  for (const Case& c : {Case{3, 20, 5, 70, 20, false, 0, 9}, Case{2, 17, 0, 34, 8, true, 0.1f, 100000},
                        Case{1, 6, 1, 7, 0, false, 0.5f, 15}}) {
    const std::vector<float> x = random_floats(size_t{kMaxRows} * c.stride, 3);
    std::vector<double> steps;
    for (uint32_t i = 0; i < c.rotary_dim / 2; ++i) steps.push_back(std::pow(1e4, -2.0 * i / c.rotary_dim));
    for_each_variant("rotate", rotate_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kMaxRows);
      Rotate op{.heads = heads_of(c, run.inout(x)),
                .table = {},
                .rotary_dim = c.rotary_dim,
                .interleaved = c.interleaved,
                .attention_factor = 1.25f,
                .query_beta = c.beta,
                .query_ctx_len = 16};
      if (c.rotary_dim > 0) op.table = run.input(make_rope_table(steps));
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      run.state.pos = c.pos;
      run.replay(kRows);
      expect_heads(c, x, run.read<float>(op.heads.x, x.size()), [&](uint32_t row, uint32_t head, uint32_t d) {
        const float* from = &x[size_t{row} * c.stride + c.column + head * c.head_dim];
        const uint32_t position = c.pos + row, half = c.rotary_dim / 2;
        const double scale = 1 + double{c.beta} * std::log(1.0 + position / op.query_ctx_len);
        if (d >= c.rotary_dim) return scale * double{from[d]};
        const bool second = c.interleaved ? d % 2 == 1 : d >= half;
        const uint32_t partner = c.interleaved ? d ^ 1u : (second ? d - half : d + half);
        const double angle = steps[c.interleaved ? d / 2 : d % half] * position;
        const double other = second ? double{from[partner]} : -double{from[partner]};
        return scale * 1.25 * (double{from[d]} * std::cos(angle) + other * std::sin(angle));
      });
    });
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
