// low_rank against double precision: rows of several adapters and rows without one in a step, matrices side by side,
// embeddings. Columns and rows of no adapter must not change.
#include <algorithm>
#include <cmath>

#include "kernels/low_rank/variants.h"
#include "kernels/testing/f16_check.h"
#include "kernels/testing/kernel_harness.h"
#include "kernels/testing/q8_check.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kRows = 3, kSlots = 2, kRank = 8;

// Step tables of three sequences. Their rows are in the order of slots 2, 0, 1, at positions 5, 6 and 7. Rows 0 and 2
// choose a token.
struct Tables {
  StepTables tables{.sequences = 3, .rows = kRows, .blocks = 1, .block_len = 32};
  std::vector<uint32_t> words() const {
    std::vector<uint32_t> out(tables.bytes() / 4);
    const uint32_t slots[kRows] = {2, 0, 1};
    for (uint32_t row = 0; row < kRows; ++row) {
      out[tables.rows_table() / 4 + 2 * row] = slots[row];
      out[tables.rows_table() / 4 + 2 * row + 1] = 5 + row;
    }
    out[StepTables::sampled() / 4] = 2;
    out[StepTables::sampled() / 4 + 1] = 0;
    out[StepTables::sampled() / 4 + 2] = 1;
    out[StepTables::sampled() / 4 + 3] = 2;
    return out;
  }
};

enum class Plan { kOne, kLast, kMany, kSampled };
constexpr uint32_t kPosition = 5;  // of the first row

// The adapter of each row, and the tables that say so to the kernel.
struct RowsCase {
  Plan plan = Plan::kOne;
  std::vector<uint32_t> adapters;  // by sequence: adapter and first position
  bool is_many() const { return plan == Plan::kMany || plan == Plan::kSampled; }
  uint32_t of(uint32_t row) const {
    constexpr uint32_t kSlotOfRow[] = {2, 0, 1};
    const uint32_t in_step = plan == Plan::kLast ? kRows - 1 : plan == Plan::kSampled ? 2 * row : row;
    const uint32_t sequence = is_many() ? kSlotOfRow[in_step] : 0;
    return kPosition + in_step >= adapters[2 * sequence + 1] ? adapters[2 * sequence] : 0;
  }
};
const RowsCase kRowsCases[] = {{Plan::kOne, {0, 0}},
                               {Plan::kOne, {2, 6}},
                               {Plan::kLast, {2, 7}},
                               {Plan::kMany, {1, 0, 2, 8, 2, 5}},
                               {Plan::kSampled, {1, 0, 2, 7, 1, 6}}};

AdapterRows bind(KernelRun& run, const RowsCase& rows) {
  run.state.pos = kPosition;
  AdapterRows out{.adapters = run.input(rows.adapters), .state = run.state_view()};
  out.selected = rows.plan == Plan::kSampled || rows.plan == Plan::kLast;
  if (!rows.is_many()) return out;
  const Tables tables;
  out.state = run.input(tables.words());
  return out;
}

class LowRankTest : public ::testing::TestWithParam<RowsCase> {
 protected:
  uint32_t rows_of() const { return GetParam().plan == Plan::kSampled ? 2 : kRows; }
};

TEST_P(LowRankTest, DownIsTheProductWithTheRowsOwnMatrix) {
  for (const uint32_t k : {54u, 60u, 1100u}) {
    const uint32_t width = 3 * kRank, padded = LowRankDown::padded_k(k);
    const std::vector<float> x = random_floats(size_t{kRows} * k, 1);
    std::vector<float> a = random_floats(size_t{kSlots} * width * padded, 2);
    for_each_variant("low_rank_down", low_rank_down_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kRows);
      const Rows in{.f32 = run.input(x)};
      LowRankDown op{.rows_x = &in,
                     .a = run.input(a),
                     .low = run.output(uint64_t{kRows} * width * 4),
                     .k = k,
                     .width = width,
                     .slots = kSlots,
                     .adapters = bind(run, GetParam())};
      const auto body = [&](Context& ctx) {
        if (GetParam().is_many()) ctx.tables = Tables().tables;
        return record(ctx, op);
      };
      if (!run.record(body)) return;
      run.replay(rows_of());
      const std::vector<uint32_t> words = run.read<uint32_t>(op.low, uint64_t{kRows} * width);
      const std::vector<float> low = run.read<float>(op.low, uint64_t{kRows} * width);
      for (uint32_t row = 0; row < kRows; ++row) {
        const uint32_t adapter = row < rows_of() ? GetParam().of(row) : 0;
        std::vector<double> want(width);
        for (uint32_t j = 0; j < width; ++j) {
          if (adapter == 0) {
            ASSERT_EQ(words[row * width + j], kPoison);
            continue;
          }
          for (uint32_t i = 0; i < k; ++i) {
            want[j] +=
                double{a[((adapter - 1) * size_t{width} + j) * padded + i]} * double{x[row * size_t{k} + i]};
          }
        }
        if (adapter == 0) continue;
        EXPECT_LT(rel_l2(std::span(low).subspan(row * width, width), want), 1e-5) << k;
      }
    });
  }
}

struct Up {
  std::vector<uint32_t> ends;
  uint32_t n, stride;
  bool is_affine;
};
const Up kUps[] = {{{70, 100, 130}, 130, 130, false}, {{130}, 130, 137, true}};

// An element of B in a slot, in the arena's layout: [vec4s, n] of vec4.
double b_at(const std::vector<float>& b, const Up& up, uint32_t slot, uint32_t column, uint32_t r) {
  const uint32_t vec4s = LowRankUp::b_vec4s(kRank, up.is_affine);
  return double{b[((size_t{slot} * vec4s + r / 4) * up.n + column) * 4 + r % 4]};
}

TEST_P(LowRankTest, UpAddsTheRowsOwnProduct) {
  for (const Up& up : kUps) {
    const auto matrices = static_cast<uint32_t>(up.ends.size());
    const std::vector<float> low = random_floats(size_t{kRows} * matrices * kRank, 3),
                             b = random_floats(
                                 size_t{kSlots} * LowRankUp::b_vec4s(kRank, up.is_affine) * up.n * 4, 4),
                             y = random_floats(size_t{kRows} * up.stride, 5);
    for_each_variant("low_rank_up", low_rank_up_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kRows);
      LowRankUp op{.low = run.input(low),
                   .b = run.input(b),
                   .y = run.inout(y),
                   .n = up.n,
                   .y_stride = up.stride,
                   .rank = kRank,
                   .slots = kSlots,
                   .ends = up.ends,
                   .is_affine = up.is_affine,
                   .adapters = bind(run, GetParam())};
      const auto body = [&](Context& ctx) {
        if (GetParam().is_many()) ctx.tables = Tables().tables;
        return record(ctx, op);
      };
      if (!run.record(body)) return;
      run.replay(rows_of());
      const std::vector<float> got = run.read<float>(op.y, y.size());
      std::vector<double> want(y.begin(), y.end());
      for (uint32_t row = 0; row < rows_of(); ++row) {
        const uint32_t adapter = GetParam().of(row);
        for (uint32_t n = 0; adapter != 0 && n < up.n; ++n) {
          uint32_t matrix = 0;
          while (n >= up.ends[matrix]) ++matrix;
          double& at = want[row * size_t{up.stride} + n];
          if (up.is_affine)
            at = at * b_at(b, up, adapter - 1, n, kRank) + b_at(b, up, adapter - 1, n, kRank + 1);
          for (uint32_t r = 0; r < kRank; ++r) {
            at += b_at(b, up, adapter - 1, n, r) * double{low[(size_t{row} * matrices + matrix) * kRank + r]};
          }
        }
      }
      EXPECT_LT(rel_l2(got, want), 1e-6);
    });
  }
}

TEST_P(LowRankTest, GateIsOfWhatTheRowsOwnProductAddsTo) {
  constexpr uint32_t kN = 96;
  for (const bool is_affine : {false, true}) {
    const Up up{{kN, 2 * kN}, 2 * kN, 2 * kN, is_affine};
    const std::vector<float> low = random_floats(size_t{kRows} * 2 * kRank, 3, 0.3f),
                             b = random_floats(
                                 size_t{kSlots} * LowRankUp::b_vec4s(kRank, is_affine) * up.n * 4, 4, 0.3f),
                             gate_up = random_floats(size_t{kRows} * up.n, 5);
    for_each_variant("low_rank_gate", low_rank_gate_variants(), [&](const Policy& policy) {
      KernelRun run(policy, kRows);
      LowRankGate op{.up = {.low = run.input(low),
                            .b = run.input(b),
                            .y = run.input(gate_up),
                            .n = up.n,
                            .y_stride = up.n,
                            .rank = kRank,
                            .slots = kSlots,
                            .ends = up.ends,
                            .is_affine = is_affine,
                            .adapters = bind(run, GetParam())},
                     .y = {.f32 = run.output(uint64_t{kRows} * kN * 4),
                           .q8 = run.output(q8_bytes(kRows, kN)),
                           .f16 = run.output(f16_bytes(kRows, kN))}};
      const auto body = [&](Context& ctx) {
        if (GetParam().is_many()) ctx.tables = Tables().tables;
        return record(ctx, op);
      };
      if (!run.record(body)) return;
      run.replay(rows_of());
      const std::vector<float> got = run.read<float>(op.y.f32, uint64_t{rows_of()} * kN);
      std::vector<double> want(got.size());
      for (uint32_t row = 0; row < rows_of(); ++row) {
        const uint32_t adapter = GetParam().of(row);
        const auto made = [&](uint32_t n) {
          double value = gate_up[row * size_t{up.n} + n];
          if (adapter == 0) return value;
          if (is_affine)
            value = value * b_at(b, up, adapter - 1, n, kRank) + b_at(b, up, adapter - 1, n, kRank + 1);
          for (uint32_t r = 0; r < kRank; ++r) {
            value += b_at(b, up, adapter - 1, n, r) * double{low[(size_t{row} * 2 + n / kN) * kRank + r]};
          }
          return value;
        };
        for (uint32_t n = 0; n < kN; ++n) {
          const double gate = made(n);
          want[row * kN + n] = gate / (1 + std::exp(-gate)) * made(kN + n);
        }
      }
      EXPECT_LT(rel_l2(got, want), 1e-6) << is_affine;
      expect_f16(run.read<uint16_t>(op.y.f16, f16_bytes(kRows, kN) / 2), got, rows_of(), kN);
      expect_q8(run.read<uint8_t>(op.y.q8, q8_bytes(kRows, kN)), got, kRows, rows_of(), kN);
    });
  }
}

TEST_P(LowRankTest, UpOfAnEmbeddingReadsTheTokensRow) {
  constexpr uint32_t kVocab = 11, kN = 70;
  const std::vector<uint32_t> tokens = {3, 10, 0};
  const Up up{{kN}, kN, kN, false};
  const std::vector<float> table = random_floats(size_t{kSlots} * kVocab * kRank, 6),
                           b = random_floats(size_t{kSlots} * kRank * kN, 7),
                           y = random_floats(size_t{kRows} * kN, 8);
  KernelRun run({}, kRows);
  LowRankUp op{.low = run.input(table),
               .tokens = run.input(tokens),
               .b = run.input(b),
               .y = run.inout(y),
               .n = kN,
               .y_stride = kN,
               .rank = kRank,
               .slots = kSlots,
               .vocab_size = kVocab,
               .ends = {kN},
               .adapters = bind(run, GetParam())};
  ASSERT_TRUE(run.record([&](Context& ctx) {
    if (GetParam().is_many()) ctx.tables = Tables().tables;
    return record(ctx, op);
  }));
  run.replay(rows_of());
  const std::vector<float> got = run.read<float>(op.y, y.size());
  std::vector<double> want(y.begin(), y.end());
  for (uint32_t row = 0; row < rows_of(); ++row) {
    const uint32_t adapter = GetParam().of(row);
    for (uint32_t n = 0; adapter != 0 && n < kN; ++n) {
      for (uint32_t r = 0; r < kRank; ++r) {
        want[row * size_t{kN} + n] +=
            b_at(b, up, adapter - 1, n, r) *
            double{table[((adapter - 1) * size_t{kVocab} + tokens[row]) * kRank + r]};
      }
    }
  }
  EXPECT_LT(rel_l2(got, want), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Rows, LowRankTest, ::testing::ValuesIn(kRowsCases));

// As many rows as tiles are for. The last tile is not full. Eight rows have one adapter, eight have several or none,
// and the others have another one.
struct ManyRows {
  static constexpr uint32_t kMost = kMostLowRankFewRows + 4, kNow = kMostLowRankFewRows + 3;
  StepTables tables{.sequences = 4, .rows = kMost, .blocks = 1, .block_len = 32};
  std::vector<uint32_t> adapters = {1, 0, 2, 0, 0, 0, 2, 7};  // by sequence: adapter and first position
  static uint32_t slot(uint32_t row) { return row < 8 ? 0 : row < 16 ? row % 4 : 1; }
  uint32_t of(uint32_t row) const { return row >= adapters[2 * slot(row) + 1] ? adapters[2 * slot(row)] : 0; }
  AdapterRows bind(KernelRun& run) const {
    std::vector<uint32_t> words(tables.bytes() / 4);
    words[1] = kNow;  // StepState::rows
    for (uint32_t row = 0; row < kNow; ++row) {
      words[tables.rows_table() / 4 + 2 * row] = slot(row);
      words[tables.rows_table() / 4 + 2 * row + 1] = row;
    }
    return {.adapters = run.input(adapters), .state = run.input(words)};
  }
};

TEST(LowRankTileTest, DownOfManyRows) {
  constexpr uint32_t kWidth = 2 * kRank;
  const ManyRows many;
  for (const uint32_t k : {54u, 132u}) {
    const uint32_t padded = LowRankDown::padded_k(k);
    const std::vector<float> x = random_floats(size_t{ManyRows::kMost} * k, 1),
                             a = random_floats(size_t{kSlots} * kWidth * padded, 2);
    for_each_variant("low_rank_down", low_rank_down_variants(), [&](const Policy& policy) {
      KernelRun run(policy, ManyRows::kMost);
      const Rows in{.f32 = run.input(x)};
      LowRankDown op{.rows_x = &in,
                     .a = run.input(a),
                     .low = run.output(uint64_t{ManyRows::kMost} * kWidth * 4),
                     .k = k,
                     .width = kWidth,
                     .slots = kSlots,
                     .adapters = many.bind(run)};
      if (!run.record([&](Context& ctx) {
            ctx.tables = many.tables;
            return record(ctx, op);
          })) {
        return;
      }
      run.replay(ManyRows::kNow);
      const std::vector<float> low = run.read<float>(op.low, uint64_t{ManyRows::kNow} * kWidth);
      const std::vector<uint32_t> words = run.read<uint32_t>(op.low, uint64_t{ManyRows::kMost} * kWidth);
      for (uint32_t row = 0; row < ManyRows::kMost; ++row) {
        const uint32_t adapter = row < ManyRows::kNow ? many.of(row) : 0;
        if (adapter == 0) {
          ASSERT_EQ(words[row * kWidth], kPoison) << row;
          continue;
        }
        std::vector<double> want(kWidth);
        for (uint32_t j = 0; j < kWidth; ++j) {
          for (uint32_t i = 0; i < k; ++i) {
            want[j] +=
                double{a[((adapter - 1) * size_t{kWidth} + j) * padded + i]} * double{x[row * size_t{k} + i]};
          }
        }
        EXPECT_LT(rel_l2(std::span(low).subspan(row * kWidth, kWidth), want), 1e-5) << row;
      }
    });
  }
}

TEST(LowRankTileTest, UpOfManyRows) {
  const ManyRows many;
  for (const Up& up : kUps) {
    const auto matrices = static_cast<uint32_t>(up.ends.size());
    const std::vector<float> low = random_floats(size_t{ManyRows::kMost} * matrices * kRank, 3),
                             b = random_floats(
                                 size_t{kSlots} * LowRankUp::b_vec4s(kRank, up.is_affine) * up.n * 4, 4),
                             y = random_floats(size_t{ManyRows::kMost} * up.stride, 5);
    for_each_variant("low_rank_up", low_rank_up_variants(), [&](const Policy& policy) {
      KernelRun run(policy, ManyRows::kMost);
      LowRankUp op{.low = run.input(low),
                   .b = run.input(b),
                   .y = run.inout(y),
                   .n = up.n,
                   .y_stride = up.stride,
                   .rank = kRank,
                   .slots = kSlots,
                   .ends = up.ends,
                   .is_affine = up.is_affine,
                   .adapters = many.bind(run)};
      if (!run.record([&](Context& ctx) {
            ctx.tables = many.tables;
            return record(ctx, op);
          })) {
        return;
      }
      run.replay(ManyRows::kNow);
      std::vector<double> want(y.begin(), y.end());
      for (uint32_t row = 0; row < ManyRows::kNow; ++row) {
        const uint32_t adapter = many.of(row);
        for (uint32_t n = 0; adapter != 0 && n < up.n; ++n) {
          uint32_t matrix = 0;
          while (n >= up.ends[matrix]) ++matrix;
          double& at = want[row * size_t{up.stride} + n];
          if (up.is_affine)
            at = at * b_at(b, up, adapter - 1, n, kRank) + b_at(b, up, adapter - 1, n, kRank + 1);
          for (uint32_t r = 0; r < kRank; ++r) {
            at += b_at(b, up, adapter - 1, n, r) * double{low[(size_t{row} * matrices + matrix) * kRank + r]};
          }
        }
      }
      EXPECT_LT(rel_l2(run.read<float>(op.y, y.size()), want), 1e-6);
    });
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
