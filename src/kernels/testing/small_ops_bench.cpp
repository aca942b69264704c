// GPU time of the small operations of a decode step, dispatch by dispatch, at the shapes of an 8B Llama: an
// investigation tool (each dispatch runs in a pass of its own between timestamps). Usage: small_ops_bench
#include <algorithm>
#include <cstdio>

#include "kernels/glu/glu.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/sample/sample.h"
#include "kernels/step/step.h"
#include "kernels/testing/kernel_harness.h"

namespace doppler::kernels::testing {
namespace {

constexpr uint32_t kHidden = 4096, kFfn = 14336, kHeads = 32, kKvHeads = 8, kHeadDim = 128, kCtx = 8192;
constexpr uint32_t kVocab = 128256;

void report(const char* what, KernelRun& run) {
  run.replay();
  const gpu::Plan& plan = run.plan();
  std::vector<std::vector<uint64_t>> times(plan.entries.size());
  constexpr int kRuns = 15;
  for (int i = 0; i < kRuns; ++i) {
    auto timed = gpu::run_to_completion(device(), device().time_commands(plan, 1));
    if (!timed) {
      std::printf("%s: %s\n", what, timed.error().message().c_str());
      return;
    }
    for (size_t c = 0; c < times.size(); ++c) times[c].push_back((*timed)[c]);
  }
  for (size_t c = 0; c < times.size(); ++c) {
    std::sort(times[c].begin(), times[c].end());
    std::printf("%-34s %-20s median %8.2f us  min %8.2f us\n", what, plan.entries[c].name.c_str(),
                static_cast<double>(times[c][kRuns / 2]) / 1000, static_cast<double>(times[c][0]) / 1000);
  }
}

void bench(const char* what, const std::string& operation, const std::string& variant,
           const std::function<std::function<Result<void>(Context&)>(KernelRun&)>& make) {
  Policy policy;
  if (!variant.empty()) policy.forced[operation] = variant;
  KernelRun run(policy);
  run.state.max_generated = UINT32_MAX;
  if (run.record(make(run))) report(what, run);
}

void bench_layer_ops() {
  for (const char* variant : {"rms_norm.subgroup", "rms_norm.portable"}) {
    bench("rms_norm 4096, residual, q8", "rms_norm", variant, [](KernelRun& run) {
      const Rows y{.f32 = run.output(kHidden * 4), .q8 = run.output(q8_bytes(1, kHidden))};
      const AddBranch op{.x = run.inout(random_floats(kHidden, 1)),
                         .branch = {.values = run.input(random_floats(kHidden, 2))},
                         .then = NormOfSum{.weight = run.input(random_floats(kHidden, 3)), .y = y},
                         .n = kHidden};
      return [op](Context& ctx) { return record(ctx, op); };
    });
  }
  bench("rope 32+8 heads of 128, f16 cache", "", "", [](KernelRun& run) {
    RopeKv op{.qkv = run.input(random_floats((kHeads + 2 * kKvHeads) * kHeadDim, 4)),
              .q_out = run.output(kHeads * kHeadDim * 4),
              .table = run.input(make_rope_table(std::vector<double>(kHeadDim / 2, 0.01))),
              .n_heads = kHeads,
              .rotary_dim = kHeadDim};
    op.cache = {.n_kv_heads = kKvHeads, .ctx_len = kCtx, .head_dim = kHeadDim};
    op.cache.k = run.output(op.cache.bytes());
    op.cache.v = run.output(op.cache.bytes());
    return [op](Context& ctx) { return record(ctx, op); };
  });
  bench("glu 14336, silu, q8", "", "", [](KernelRun& run) {
    const Glu op{.gate_up = run.input(random_floats(2 * kFfn, 5)),
                 .y = {.f32 = run.output(kFfn * 4), .q8 = run.output(q8_bytes(1, kFfn))},
                 .n = kFfn};
    return [op](Context& ctx) { return record(ctx, op); };
  });
}

void bench_sampling(const char* what, bool greedy, const SampleParams& params) {
  Random random(6);  // normal, as a language model's logits roughly are: no token takes it all, none tie
  std::vector<float> logits(kVocab);
  for (float& l : logits) l = static_cast<float>(random.normal()) * 3;
  bench(what, "", "", [&](KernelRun& run) {
    std::vector<uint8_t> bytes(256);
    std::memcpy(bytes.data(), &params, sizeof(params));
    const Sample op{.logits = run.inout(logits),
                    .params = run.input(bytes),
                    .bias = run.input(std::vector<uint32_t>(kMaxLogitBias * 2)),
                    .counts = run.inout(std::vector<uint32_t>(kVocab)),
                    .token = run.output(4),
                    .vocab_size = kVocab,
                    .greedy = greedy};
    const Step step{.token = op.token,
                    .ring = run.output(kTokenRing * 4),
                    .counts = op.counts,
                    .recent = run.inout(std::vector<uint32_t>(kPenaltyRing)),
                    .vocab_size = kVocab};
    return [op, step](Context& ctx) -> Result<void> {
      DP_CHECK(record(ctx, op));
      return record(ctx, step);
    };
  });
}

}  // namespace
}  // namespace doppler::kernels::testing

int main() {
  using namespace doppler::kernels::testing;
  using doppler::kernels::SampleParams;
  bench_layer_ops();
  bench_sampling("greedy", true, {});
  bench_sampling("defaults (top-k 40, top-p 0.95)", false, {});
  bench_sampling("top-p 0.95 alone", false, {.temperature = 1, .top_k = 0});
  bench_sampling("no filter", false, {.temperature = 1, .top_p = 1, .top_k = 0});
  return 0;
}
