// The token after each row of a chunk.
#include <algorithm>

#include "kernels/step/draft.h"
#include "kernels/step/variants.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

TEST(NextTokens, AreThoseBehindEachRow) {
  const std::vector<uint32_t> tokens = {10, 11, 12, 13, 14, 15};
  for (const bool has_chosen : {true, false}) {
    for_each_variant("next_tokens", next_tokens_variants(), [&](const Policy& policy) {
      KernelRun run(policy, 5);
      const NextTokens op{.tokens = run.input(tokens),
                          .chosen = has_chosen ? run.input(std::vector<uint32_t>{99}) : TensorView{},
                          .out = run.output(5 * 4)};
      if (!run.record([&](Context& ctx) { return record(ctx, op); })) return;
      for (const uint32_t rows : {1u, 2u, 5u}) {
        run.overwrite(op.out, std::vector<uint32_t>(5, kPoison));
        run.replay(rows);
        std::vector<uint32_t> want(5, kPoison);
        std::copy_n(tokens.begin() + 1, rows, want.begin());
        if (has_chosen) want[rows - 1] = 99;
        EXPECT_EQ(run.read<uint32_t>(op.out, 5), want);
      }
    });
  }
}

}  // namespace
}  // namespace doppler::kernels::testing
