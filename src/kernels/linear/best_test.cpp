// The best output of each tile that a product of logits leaves (TileArgmax), and the argmax over them: with ties, in
// several pieces, with NaNs, with and without the logits themselves.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "kernels/linear/record_linear.h"
#include "kernels/linear/test_weights.h"
#include "kernels/sample/sample.h"

namespace doppler::kernels::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class BestTest : public ::testing::TestWithParam<WeightFormat> {};

// The same outputs as the plain product, bit for bit, and the best of each of its tiles; 100 rows end inside a tile.
TEST_P(BestTest, IsThatOfEachTile) {
  constexpr uint32_t kN = 100, kK = 288;
  const TestWeight test = random_weight(GetParam(), kN, kK, 1);
  constexpr float kSquares = 3;  // of each block
  std::vector<float> x = random_floats(kK, 2);
  x.resize(DeferredNorm::bytes(kK, false) / 4);
  std::fill_n(x.begin() + DeferredNorm::sums_offset(kK, false) / 4, kK / kQ8Block, kSquares);
  for (const char* suffix : {".dp4a.tile", ".tile"}) {
    if (suffix[1] == 'd' && !weight_format_info(GetParam()).quantised()) continue;
    SCOPED_TRACE(suffix);
    KernelRun run(forced_matvec(GetParam(), suffix), 1);
    const Weight weight = upload(run, test, /*rows_per_piece=*/64);
    const uint32_t tile_rows = kTileRows, tiles = (kN + tile_rows - 1) / tile_rows;
    ASSERT_EQ(best_count(weight), tiles);
    const TensorView plain = run.output(kN * 4), y = run.output(kN * 4),
                     best = run.output(tiles * kBestBytes);
    const DeferredNorm input{.buffer = run.input(x), .weight = {}, .k = kK, .eps = 1e-5f, .q8 = false};
    ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
      EXPECT_EQ(epilogue_refusal(ctx, weight, EpilogueKind::kTileArgmax), "");
      DP_CHECK(record_linear(ctx, Linear{.weight = weight, .x = input, .y = Store{.y = plain}}));
      return record_linear(ctx, Linear{.weight = weight, .x = input, .y = TileArgmax{.best = best, .y = y}});
    }));
    run.replay();
    const std::vector<float> logits = run.read<float>(y, kN);
    EXPECT_EQ(logits, run.read<float>(plain, kN));
    const std::vector<uint32_t> pairs = run.read<uint32_t>(best, 2 * tiles);
    for (uint32_t tile = 0; tile < tiles; ++tile) {
      uint32_t want = tile_rows * tile;
      for (uint32_t i = want; i < std::min(kN, tile_rows * (tile + 1)); ++i) {
        if (logits[i] > logits[want]) want = i;
      }
      EXPECT_EQ(pairs[2 * tile + 1], want) << "tile " << tile;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, BestTest, ::testing::Values(WeightFormat::kTileQ6, WeightFormat::kTileBF16),
                         [](const auto& format) {
                           return std::string(weight_format_info(format.param).name);
                         });

// The token chosen among these logits, without the logits being written.
void expect_choice(const std::vector<float>& logits, uint32_t want) {
  constexpr uint32_t kK =
      32;  // one unit; the first of x is 1 and the rest 0, so a logit is its row's first weight
  TestWeight test = random_weight(WeightFormat::kTileF16, static_cast<uint32_t>(logits.size()), kK, 1);
  for (size_t row = 0; row < logits.size(); ++row) {
    const uint16_t half = f32_to_f16(logits[row]);
    std::memcpy(&test.plane0[(row / 32 * 4 * 32 + row % 32) * 16], &half, 2);
  }
  std::vector<float> x(kK);
  x[0] = 1;
  for (const uint32_t rows_per_piece : {0u, 32u}) {
    KernelRun run(forced_matvec(WeightFormat::kTileF16, ".tile"), 1);
    const Weight weight = upload(run, test, rows_per_piece);
    const uint32_t count = best_count(weight);
    const TensorView best = run.output(count * kBestBytes), token = run.output(4), view = run.input(x);
    ASSERT_TRUE(run.record([&](Context& ctx) -> Result<void> {
      DP_CHECK(record_linear(
          ctx, Linear{.weight = weight, .x = Rows{.f32 = view}, .y = TileArgmax{.best = best}}));
      return record(ctx, Sample{.logits = {},
                                .best = best,
                                .best_count = count,
                                .token = token,
                                .vocab_size = weight.n,
                                .greedy = true});
    }));
    run.replay();
    EXPECT_EQ(run.read<uint32_t>(token, 1)[0], want) << logits.size() << " logits, " << rows_per_piece;
  }
}

TEST(Best, ChoosesAsArgmaxDoes) {
  std::vector<float> logits(100, -3);
  logits[99] = -2;
  expect_choice(logits, 99);
  logits[70] = logits[40] = logits[41] = 2;
  expect_choice(logits, 40);
  expect_choice(std::vector<float>(70, 1.5f), 0);
  logits.assign(80, kNan);
  expect_choice(logits, kNotFinite);
  logits[50] = -kInf;
  expect_choice(logits, kNotFinite);
  logits[34] = -5;
  expect_choice(logits, 34);
  logits[66] = kInf;
  expect_choice(logits, kNotFinite);
  expect_choice({-1, -0.0f, 0.0f, -0.0f}, 1);
}

TEST(Best, IsRefusedBesideABias) {
  const TestWeight test = random_weight(WeightFormat::kTileQ8, 64, 64, 1);
  KernelRun run(forced_matvec(WeightFormat::kTileQ8, ".tile"), 1);
  const Weight weight = upload(run, test);
  const TensorView any = run.input(std::vector<float>(64));
  const Result<void> recorded = run.try_record([&](Context& ctx) {
    return record_linear(
        ctx,
        Linear{.weight = weight, .x = Rows{.f32 = any}, .bias = any, .y = TileArgmax{.best = any, .y = any}});
  });
  ASSERT_FALSE(recorded);
  EXPECT_EQ(recorded.error().sentence(), "The best outputs of test are asked of a product with bias.");
}

}  // namespace
}  // namespace doppler::kernels::testing
