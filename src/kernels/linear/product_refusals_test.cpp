// Tests the refusals of products' variants, a row a reason (linear.h), on a made-up device: no GPU.
#include <gtest/gtest.h>

#include <variant>

#include "kernels/linear/product.h"
#include "kernels/linear/record_linear.h"

namespace doppler::kernels::testing {
namespace {

constexpr WeightFormat kQ4 = WeightFormat::kTileQ4, kQ6 = WeightFormat::kTileQ6, kF16 = WeightFormat::kF16;
constexpr ActivationFn kNone = ActivationFn::kNone, kSilu = ActivationFn::kSilu;

struct Asked {
  uint32_t n = 64, k = 64;
  const char* variant = "dp4a.tile";  // after operation and format
  uint32_t pieces = 1;
  ActivationFn gate = kNone;
  uint32_t max_rows = 1;
  WeightFormat format = kQ4;

  ProductShape shape() const {
    return {.format = format, .n = n, .k = k, .max_rows = max_rows, .gate = gate};
  }
  Weight weight() const {
    Weight made{.format = format, .n = n, .k = k};
    for (uint32_t i = 0; i < pieces; ++i) {
      made.pieces.push_back({.buffer = {}, .first_row = n / pieces * i, .rows = n / pieces});
    }
    return made;
  }
};

// The device: WebGPU's default limits, unless a row asks for others.
struct Limits {
  uint32_t workgroup_bytes = 16384, invocations = 512, workgroups = 65535, storage_buffers = 10;
};

gpu::Caps caps_of(const Limits& limits) {
  gpu::Caps caps;
  caps.type = gpu::AdapterType::kDiscrete;
  caps.dp4a = caps.f16 = caps.subgroups = caps.matrix_f16 = true;
  caps.subgroup_min = caps.subgroup_max = 32;
  caps.max_workgroup_bytes = limits.workgroup_bytes;
  caps.max_invocations = caps.max_workgroup_size_x = limits.invocations;
  caps.max_workgroups = limits.workgroups;
  caps.max_storage_buffers = limits.storage_buffers;
  return caps;
}

// A context to ask in, with the variants of `asked` forced.
struct Asking {
  gpu::PlanBuilder plan;
  Policy policy;
  std::vector<Choice> choices;
  Context ctx;

  Asking(const std::vector<Asked>& all, const Limits& limits)
      : plan(caps_of(limits)),
        ctx{.plan = plan, .policy = policy, .choices = choices, .max_rows = all.front().max_rows} {
    for (const Asked& asked : all) {
      const std::string operation = product_operation(asked.shape());
      policy.forced[operation] = operation + "." + asked.variant;
    }
  }
};

struct Refusal {
  std::variant<PrologueKind, EpilogueKind> kind;
  Asked asked;
  const char* reason = "";  // empty: it is not refused
  Limits limits = {};
};

constexpr PrologueKind kRows = PrologueKind::kRows, kDeferred = PrologueKind::kDeferredNorm,
                       kAddNorm = PrologueKind::kAddRmsNorm, kPartials = PrologueKind::kSplitPartials;
constexpr EpilogueKind kStore = EpilogueKind::kStore, kAddResidual = EpilogueKind::kAddResidual,
                       kDefer = EpilogueKind::kDeferredNorm, kGate = EpilogueKind::kGate,
                       kArgmax = EpilogueKind::kTileArgmax, kGateOf = EpilogueKind::kGateOf;
constexpr const char* kNoTiles = "matvec.tile_q4.portable is no product of one row in tiles";
constexpr const char* kTwoBuffers = "the weight lies in 2 buffers, and one is bound";
constexpr const char* kPartOfATile = "72 rows are not whole tiles of 32";
constexpr const char* kPartOfHalfATile = "72 rows are not whole half tiles of 16";
constexpr const char* kTooManyGroups = "it needs more workgroups than this device has";

const Refusal kRefusals[] = {
    {kRows, {.n = 72, .variant = "portable", .pieces = 2}},

    {kDeferred, {}},
    {kDeferred, {.n = 72, .pieces = 2}},
    {kDeferred, {.variant = "portable"}, kNoTiles},
    {kDeferred, {.n = 128, .pieces = 2, .gate = kSilu}, kTwoBuffers},
    {kDeferred, {.k = 6144}},
    {kDeferred, {.k = 6144, .gate = kSilu}},
    {kDeferred, {.k = 8192}, "it needs 17408 bytes of workgroup memory, this device has 16384"},
    {kDeferred, {.k = 8192, .variant = "tile"}},  // x is not held there
    {kDeferred,
     {.variant = "once", .max_rows = 4},
     "matmul_skinny.tile_q4.once is no product of one row in tiles"},

    {kAddNorm, {}},
    {kAddNorm, {.gate = kSilu}},
    {kAddNorm, {.variant = "portable"}, kNoTiles},
    {kAddNorm, {.pieces = 2}, kTwoBuffers},
    {kAddNorm, {.n = 72}, kPartOfATile},
    {kAddNorm, {.k = 8192}, "it needs 19456 bytes of workgroup memory, this device has 16384"},
    {kAddNorm, {.k = 6144, .gate = kSilu}, "it needs 17408 bytes of workgroup memory, this device has 16384"},
    {kAddNorm, {.n = 16384, .k = 2048}},
    {kAddNorm,
     {.n = 32768, .k = 2048},
     "its workgroups would read 32.0 MiB of parts of x, and a dispatch costs less beyond 16.0 MiB"},
    {kAddNorm, {.n = 32768, .k = 2048, .gate = kSilu}},  // half as many outputs
    {kAddNorm, {.variant = "tile"}, "matvec.tile_q4.tile does not read x in 8 bits"},
    {kAddNorm, {}, "it binds 10 storage buffers, this device allows 8", {.storage_buffers = 8}},
    {kAddNorm, {.k = 6144}, "6144 columns are more than the blocks of 256 invocations", {.invocations = 256}},
    {kAddNorm, {}, kTooManyGroups, {.workgroups = 3}},

    {kPartials, {}},
    {kPartials, {.variant = "tile"}},
    {kPartials, {.variant = "portable"}, kNoTiles},
    {kPartials, {.pieces = 2}, kTwoBuffers},
    {kPartials, {.n = 72}, kPartOfATile},
    {kPartials, {.k = 4096}, "it needs 25600 bytes of workgroup memory, this device has 16384"},
    {kPartials,
     {.k = 4096},
     "4096 columns are more than its registers take (2048)",
     {.workgroup_bytes = 32768}},
    {kPartials,
     {.n = 8192, .k = 2048},
     "its workgroups would read 32.0 MiB of parts of x, and a dispatch costs less beyond 16.0 MiB"},
    {kPartials, {.gate = kSilu}, "a gated product does not reduce splits"},
    {kPartials, {}, kTooManyGroups, {.workgroups = 3}},

    {kStore, {.n = 72, .variant = "portable", .pieces = 2}},
    {kAddResidual, {.n = 72, .variant = "portable", .pieces = 2}},

    {kDefer, {}},
    {kDefer, {.variant = "portable"}, kNoTiles},
    {kDefer, {.pieces = 2}, kTwoBuffers},
    {kDefer, {.n = 72}, kPartOfATile},
    {kGateOf, {.n = 72}, kPartOfATile},
    {kGateOf, {.variant = "portable"}, kNoTiles},

    {kGate, {.variant = "portable", .gate = kSilu}},
    {kGate, {.gate = kSilu}},
    {kGate, {.n = 128, .pieces = 2, .gate = kSilu}, kTwoBuffers},
    {kGate, {.n = 128, .variant = "once.dp4a", .gate = kSilu, .max_rows = 4}},
    {kGate, {.n = 128, .variant = "once.dp4a", .gate = kSilu, .max_rows = 64}},
    {kGate, {.n = 128, .variant = "few.dp4a", .gate = kSilu, .max_rows = 8}},
    {kGate, {.n = 128, .variant = "narrow", .gate = kSilu, .max_rows = 64}},
    {kGate, {.n = 128, .variant = "narrow", .gate = kSilu, .max_rows = 16}},
    {kGate, {.n = 128, .variant = "matrix", .gate = kSilu, .max_rows = 65}},
    {kGate, {.n = 128, .variant = "matrix", .pieces = 2, .gate = kSilu, .max_rows = 65}, kTwoBuffers},
    {kGate,
     {.n = 96, .variant = "matrix", .gate = kSilu, .max_rows = 65},
     "half of 96 rows are not whole tiles of 32"},
    {kGate, {.variant = "once", .gate = kSilu, .max_rows = 4}, "matmul_skinny.tile_q4.once has no gate"},
    {kGate, {.variant = "tile64", .gate = kSilu, .max_rows = 64}, "matmul_narrow.tile_q4.tile64 has no gate"},

    {kArgmax, {.n = 72, .pieces = 2}},
    {kArgmax, {.variant = "portable"}, kNoTiles},
};

TEST(ProductRefusals, HaveAReasonEach) {
  for (const Refusal& row : kRefusals) {
    Asking asking({row.asked}, row.limits);
    const Weight weight = row.asked.weight();
    SCOPED_TRACE(
        format_text("row %td: %u x %u, %s", &row - kRefusals, weight.n, weight.k, row.asked.variant));
    const auto* prologue = std::get_if<PrologueKind>(&row.kind);
    EXPECT_EQ(prologue
                  ? prologue_refusal(asking.ctx, weight, *prologue, row.asked.gate)
                  : epilogue_refusal(asking.ctx, weight, std::get<EpilogueKind>(row.kind), row.asked.gate),
              row.reason);
  }
}

struct PairRefusal {
  PrologueKind kind;
  Asked first, second;
  const char* reason = "";
  Limits limits = {};
  bool has_bias = false;
};

constexpr Asked kSecond{.n = 32, .format = kQ6};
constexpr Asked kOfFew{.variant = "few.dp4a", .max_rows = 8},
    kSecondOfFew{.n = 40, .variant = "few.dp4a", .max_rows = 8, .format = kQ6};

const PairRefusal kPairRefusals[] = {
    {kRows, {}, kSecond},
    {kDeferred, {}, kSecond},
    {kDeferred,
     {.k = 6400},
     {.n = 32, .k = 6400, .format = kQ6},
     "it needs 16768 bytes of workgroup memory, this device has 16384"},
    {kAddNorm, {}, kSecond},
    {kRows, {.variant = "portable"}, kSecond, "matvec.tile_q4.portable makes the outputs of one weight"},
    {kRows,
     {},
     {.variant = "portable", .format = kF16},
     "matvec.tile_q4.dp4a.tile and matvec.f16.portable are different kernels"},
    {kRows, {.pieces = 2}, kSecond, kTwoBuffers},
    {kRows, {}, {.pieces = 2, .format = kQ6}, kTwoBuffers},
    {kRows, {.n = 72}, kSecond, kPartOfHalfATile},
    {kRows, {}, {.n = 72, .format = kQ6}, kPartOfHalfATile},
    {kRows, {.variant = "tile"}, kSecond, "the two products read different forms of x"},
    {kRows, {.k = 128}, kSecond, "the two products read different forms of x"},
    {kRows, {}, kSecond, kTooManyGroups, {.workgroups = 5}},
    {kAddNorm, {}, kSecond, kTooManyGroups, {.workgroups = 5}},
    {kRows, {}, kSecond, "", {}, true},
    {kAddNorm, {}, kSecond, "a pair of products that makes its input has no bias", {}, true},
    {kPartials, {}, kSecond, "a pair of products does not reduce splits"},
    {kAddNorm,
     {.n = 32768, .k = 2048},
     {.n = 32, .k = 2048, .format = kQ6},
     "its workgroups would read 32.0 MiB of parts of x, and a dispatch costs less beyond 16.0 MiB"},
    {kRows, kOfFew, kSecondOfFew},
    {kRows, kOfFew, kSecondOfFew, "", {}, true},
    {kRows,
     {.n = 96, .variant = "few.dp4a", .max_rows = 8},
     kSecondOfFew,
     "96 rows are not whole pairs of tiles of 32"},
    {kRows,
     kOfFew,
     {.n = 32, .variant = "once.dp4a", .max_rows = 8, .format = kQ6},
     "matmul_skinny.tile_q4.few.dp4a and matmul_skinny.tile_q6.once.dp4a are different kernels"},
    {kDeferred, kOfFew, kSecondOfFew, "matmul_skinny.tile_q4.few.dp4a is no product of one row in tiles"},
    {kRows, kOfFew, kSecondOfFew, "it binds 9 storage buffers, this device allows 8", {.storage_buffers = 8}},
};

TEST(ProductRefusals, OfPairsHaveAReasonEach) {
  for (const PairRefusal& row : kPairRefusals) {
    SCOPED_TRACE(format_text("row %td", &row - kPairRefusals));
    Asking asking({row.first, row.second}, row.limits);
    EXPECT_EQ(pair_refusal(asking.ctx, row.first.weight(), row.second.weight(),
                           {.prologue = row.kind, .has_bias = row.has_bias}),
              row.reason);
  }
}

TEST(ProductChoice, SaysWhatFormOfXItReads) {
  struct Row {
    Asked asked;
    InputForm form;
  };
  for (const auto& [asked, form] :
       {Row{{.variant = "portable"}, InputForm::kF32}, Row{{.variant = "tile"}, InputForm::kF32},
        Row{{.variant = "dp4a.tile"}, InputForm::kQ8}, Row{{.variant = "dp4a"}, InputForm::kQ8},
        Row{{.variant = "once.dp4a", .max_rows = 4}, InputForm::kQ8},
        Row{{.variant = "matrix", .max_rows = 65}, InputForm::kF16},
        Row{{.variant = "narrow", .max_rows = 64}, InputForm::kF16},
        Row{{.variant = "narrow", .max_rows = 9}, InputForm::kF16},
        Row{{.variant = "few.dp4a", .max_rows = 8}, InputForm::kQ8},
        Row{{.variant = "tile64", .max_rows = 64}, InputForm::kF32}}) {
    SCOPED_TRACE(asked.variant);
    Asking asking({asked}, {});
    const Result<ProductChoice> choice = resolve_product(asking.ctx, asked.weight());
    ASSERT_TRUE(choice) << choice.error().sentence();
    EXPECT_EQ(choice->reads(), form);
    EXPECT_TRUE(choice->choice.forced);
    EXPECT_TRUE(asking.choices.empty());  // record() notes it
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
