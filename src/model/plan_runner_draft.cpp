// PlanRunner's steps that draft: the next-token layer behind a step's last state guesses the token behind the one that was
// chosen, and the next step evaluates both. Two rows take little more than one, since weights are read once; where the guess
// was right both tokens stay. What is chosen is what the model itself chooses: a draft only decides how much is evaluated.
// Read next: kernels/step/draft.h (what counts), layers/next_token.h (the layer).
#include "base/log.h"
#include "kernels/linear/linear.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/step/draft.h"
#include "lowering/lowering.h"
#include "model/load_estimate.h"
#include "model/plan_row.h"

namespace doppler::model {
namespace {

constexpr uint32_t kRows = 2;  // of a step: a token and its draft
constexpr uint64_t kTokenBytes = sizeof(uint32_t);

// Why a model does not draft; "" if nothing speaks against it.
std::string refuse_drafting(const RunnerOptions& options, const formats::ModelConfig& config) {
  if (options.drafting == Drafting::kOff) return "it was turned off";
  if (config.next_layers == 0) return "the model has no next-token layer";
  if (options.max_sequences != 0) return "it is for one sequence, and the model is loaded for several";
  if (options.all_logits && options.drafting != Drafting::kOn) return "all logits are asked for";
  if (options.layers != 0) return "only some layers are loaded";
  if (options.chunk < kRows) return "a chunk has one row";
  if (options.policy.allows(kernels::Lane::kPersistent)) return "the lane persistent has steps of one row";
  if (options.expert_bytes != 0) return "experts are paged";
  return "";
}

}  // namespace

Result<std::string> choose_drafting(const RunnerOptions& options, formats::ModelConfig& config) {
  std::string reason = refuse_drafting(options, config);
  if (!reason.empty() && options.drafting == Drafting::kOn) {
    return fail(ErrorKind::kUnsupported, "The model %s cannot draft tokens (--draft on): %s.",
                config.name.c_str(), reason.c_str());
  }
  if (!reason.empty()) config.next_layers = 0;
  return reason;
}

void PlanRunner::refuse_drafts(std::string reason) {
  drafts_refused_ = std::move(reason);
  log(LogLevel::kInfo, "The next-token layer of %s is left out (--draft): %s.", config_.name.c_str(),
      drafts_refused_.c_str());
}

Task<Result<void>> PlanRunner::make_draft_buffers(gpu::PlanBuilder& builder) {
  [[maybe_unused]] gpu::Buffer* made = nullptr;
  DP_CO_TRY(made, co_await buffer(builder, "drafts", kRows * kTokenBytes, &views_.drafts));
  DP_CO_TRY(made, co_await buffer(builder, "choices", kRows * kTokenBytes, &views_.choices));
  DP_CO_TRY(made, co_await buffer(builder, "next_drafts", kRows * kTokenBytes, &views_.next));
  DP_CO_TRY(made, co_await buffer(builder, "tokens_behind", options_.chunk * kTokenBytes, &views_.behind));
  const uint64_t rows = options_.all_logits ? options_.chunk : kRows;
  DP_CO_TRY(next_logits_, co_await buffer(builder, "draft_logits", rows * config_.vocab_size * kTokenBytes,
                                          &views_.next_logits));
  co_return Result<void>();
}

Result<void> PlanRunner::record_draft_begin(kernels::Context& ctx) {
  ctx.op_label = "draft";
  return kernels::record(ctx, kernels::DraftBegin{.token = views_.token, .drafts = views_.drafts});
}

// After a chunk: the layer fills its cache, and after a prompt it drafts.
Result<void> PlanRunner::record_next(kernels::Context& ctx, lowering::Lowering& lowering,
                                     const PlanRow& row) {
  const bool samples = row.logits_rows == lowering::LogitsRows::kLast;
  ctx.op_label = "next_tokens";
  DP_CHECK(kernels::record(ctx, kernels::NextTokens{.tokens = views_.tokens,
                                                    .chosen = samples ? views_.token : kernels::TensorView{},
                                                    .out = views_.behind}));
  DP_CHECK(lowering.run_next());
  if (!samples) return {};
  kernels::Context one_row = ctx;
  one_row.max_rows = 1;
  one_row.op_label = "draft";
  DP_CHECK(kernels::record(one_row, kernels::Sample{.logits = views_.next_logits,
                                                    .token = views_.next,
                                                    .vocab_size = config_.vocab_size,
                                                    .greedy = true}));
  return ctx.plan.copy(views_.next.sub(0, kTokenBytes), views_.drafts.sub(kTokenBytes, kTokenBytes), "draft");
}

Result<void> PlanRunner::record_draft_end(kernels::Context& ctx, lowering::Lowering& lowering,
                                          const lowering::Logits& logits, const PlanRow& row) {
  kernels::Sample sample = sample_of(logits, row, {});
  sample.token = views_.choices;
  sample.rows = kRows;
  ctx.op_label = "sample";
  DP_CHECK(kernels::record(ctx, sample));
  DP_CHECK(lowering.run_next());
  ctx.op_label = "draft";
  DP_CHECK(kernels::record(ctx, kernels::Sample{.logits = views_.next_logits,
                                                .token = views_.next,
                                                .vocab_size = config_.vocab_size,
                                                .rows = kRows,
                                                .greedy = true}));
  ctx.op_label = "step";
  return kernels::record(ctx, kernels::DraftEnd{.choices = views_.choices,
                                                .drafts = views_.drafts,
                                                .next = views_.next,
                                                .token = views_.token,
                                                .ring = views_.ring,
                                                .counts = views_.counts,
                                                .recent = views_.recent,
                                                .vocab_size = config_.vocab_size});
}

const gpu::Plan& PlanRunner::draft_plan(bool greedy) const {
  return plan(greedy ? "draft.greedy" : "draft.sample");
}

}  // namespace doppler::model
