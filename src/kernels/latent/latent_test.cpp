// head_part and latent_heads against plain loops, to the bit; and every_expert, which goes with them.
#include <bit>

#include "kernels/latent/variants.h"
#include "kernels/moe/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kMaxRows = 3, kRows = 2;

TEST(HeadPart, EveryVariantCopiesThePart) {
  constexpr uint32_t kHeads = 5, kHeadDim = 20, kFirst = 3, kN = 14;
  const std::vector<float> x = random_floats(size_t{kMaxRows} * kHeads * kHeadDim, 1);
  for_each_variant("head_part", head_part_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    const HeadPart op{.x = run.input(x),
                      .y = run.output(uint64_t{kMaxRows} * kHeads * kN * 4),
                      .n_heads = kHeads,
                      .head_dim = kHeadDim,
                      .first = kFirst,
                      .n = kN};
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(kRows);
    std::vector<float> want;
    for (uint32_t head = 0; head < kRows * kHeads; ++head) {
      const auto from = x.begin() + head * kHeadDim + kFirst;
      want.insert(want.end(), from, from + kN);
    }
    EXPECT_EQ(run.read<float>(op.y, want.size()), want);
    EXPECT_EQ(run.read<uint32_t>(op.y, size_t{kMaxRows} * kHeads * kN).back(), kPoison)
        << "row past the last";
  });
}

TEST(LatentHeads, EveryVariantPutsPartsInTheirPlaces) {
  constexpr uint32_t kHeads = 3, kNope = 6, kRope = 4, kRank = 9, kStride = 17, kLatent = 1, kKey = 12;
  const std::vector<float> q = random_floats(size_t{kMaxRows} * kHeads * (kNope + kRope), 1),
                           absorbed = random_floats(size_t{kMaxRows} * kHeads * kRank, 2),
                           kv = random_floats(size_t{kMaxRows} * kStride, 3);
  for_each_variant("latent_heads", latent_heads_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    LatentHeads op{.q = run.input(q),
                   .absorbed = run.input(absorbed),
                   .kv = run.input(kv),
                   .kv_stride = kStride,
                   .latent_column = kLatent,
                   .key_column = kKey,
                   .n_heads = kHeads,
                   .nope_dim = kNope,
                   .rope_dim = kRope,
                   .rank = kRank};
    op.qkv = run.output(uint64_t{kMaxRows} * op.columns() * 4);
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(kRows);
    std::vector<float> want;
    const auto add = [&](const std::vector<float>& from, size_t at, size_t n) {
      want.insert(want.end(), from.begin() + static_cast<ptrdiff_t>(at),
                  from.begin() + static_cast<ptrdiff_t>(at + n));
    };
    for (uint32_t row = 0; row < kRows; ++row) {
      for (uint32_t head = row * kHeads; head < (row + 1) * kHeads; ++head) {
        add(q, size_t{head} * (kNope + kRope) + kNope, kRope);
        add(absorbed, size_t{head} * kRank, kRank);
      }
      add(kv, row * kStride + kKey, kRope);
      add(kv, row * kStride + kLatent, kRank);
      want.insert(want.end(), kRope, 0.0f);
      add(kv, row * kStride + kLatent, kRank);
    }
    EXPECT_EQ(run.read<float>(op.qkv, want.size()), want);
    EXPECT_EQ(run.read<uint32_t>(op.qkv, size_t{kMaxRows} * op.columns()).back(), kPoison);
  });
}

TEST(EveryExpert, EveryVariantNamesAllOfThem) {
  constexpr uint32_t kExperts = 130;  // more than a router may choose
  for_each_variant("every_expert", every_expert_variants(), [&](const Policy& policy) {
    KernelRun run(policy, kMaxRows);
    const EveryExpert op{.y = {.view = run.output(uint64_t{kMaxRows} * 2 * kExperts * 4),
                               .n_experts = kExperts,
                               .n_used = kExperts}};
    if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
    run.replay(kRows);
    std::vector<uint32_t> want;
    for (uint32_t i = 0; i < kRows * 2 * kExperts; ++i) {
      const uint32_t word = i % (2 * kExperts);
      want.push_back(word < kExperts ? word : std::bit_cast<uint32_t>(1.0f));
    }
    EXPECT_EQ(run.read<uint32_t>(op.y.view, want.size()), want);
  });
}

}  // namespace
}  // namespace doppler::kernels::testing
