// DeviceModel's steps that draft. A drafter guesses the tokens after the one that was chosen, and a step evaluates all
// these tokens together. A few rows take little more time than one, since weights are read once. Right guesses stay.
// The choice is the model's own: a draft only decides what is evaluated.
// Read next: drafter.h (the drafters), kernels/step/draft.h (the choices that count), layers/next_token.h (the layer).
#include <bit>

#include "base/log.h"
#include "kernels/linear/linear.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/step/advance_drafts.h"
#include "kernels/step/draft.h"
#include "kernels/step/draft_past.h"
#include "kernels/step/lookup.h"
#include "lowering/lowering.h"
#include "model/load_estimate.h"
#include "model/plan_row.h"

namespace doppler::model {
namespace {

constexpr uint32_t kNextRows = 2;  // of a step with the next-token layer: a token and its draft
constexpr uint64_t kTokenBytes = sizeof(uint32_t);

// Why a model does not draft; "" if nothing speaks against it.
std::string refuse_drafting(const RunnerOptions& options, const formats::ModelConfig& config) {
  if (options.drafting == Drafting::kOff) return "it was turned off";
  if (options.drafting == Drafting::kLookup || options.drafting == Drafting::kModel)
    return "another drafter was asked for";
  if (config.next_layers == 0) return "the model has no next-token layer";
  if (options.max_sequences != 0) return "it is for one sequence, and the model is loaded for several";
  if (options.all_logits && options.drafting != Drafting::kNext) return "all logits are asked for";
  if (options.layers != 0) return "only some layers are loaded";
  if (!formats::is_whole(config)) return "its layers lie on several devices";
  if (options.chunk < kNextRows) return "a chunk has one row";
  if (options.policy.allows(kernels::Lane::kPersistent)) return "the lane persistent has steps of one row";
  if (options.expert_bytes != 0) return "experts are paged";
  return "";
}

}  // namespace

Result<std::string> choose_drafting(const RunnerOptions& options, formats::ModelConfig& config) {
  std::string reason = refuse_drafting(options, config);
  if (!reason.empty() && options.drafting == Drafting::kNext) {
    return fail(ErrorKind::kUnsupported, "The model %s cannot draft tokens (--draft next): %s.",
                config.name.c_str(), reason.c_str());
  }
  if (!reason.empty()) config.next_layers = 0;
  return reason;
}

void DeviceModel::refuse_drafts(std::string reason) {
  drafts_refused_ = std::move(reason);
  log(LogLevel::kInfo, "The next-token layer of %s is left out (--draft): %s.", config_.name.c_str(),
      drafts_refused_.c_str());
}

// The text does not change, but whoever asked for drafts waits for speed.
void DeviceModel::warn_no_lookup() const {
  if (options_.drafting != Drafting::kLookup || !runner_) return;
  if (state_bytes(config_) == 0 || draft_shape().most_rows > 1) return;
  log(LogLevel::kWarning,
      "No tokens are drafted (--draft lookup): recurrent states are kept after one row only.");
}

// If the next-token layer was loaded, the plans of prompts have it.
Task<Result<void>> DeviceModel::make_draft_buffers(gpu::PlanBuilder& builder) {
  DP_CO_CHECK(co_await draft_plans_.make_buffers(device_, builder, draft_shape()));
  [[maybe_unused]] gpu::Buffer* made = nullptr;
  DP_CO_TRY(made, co_await buffer(builder, "tokens_behind", options_.chunk * kTokenBytes, &views_.behind));
  const uint64_t rows = options_.all_logits ? options_.chunk : kNextRows;
  DP_CO_TRY(next_logits_, co_await buffer(builder, "draft_logits", rows * config_.vocab_size * kTokenBytes,
                                          &views_.next_logits));
  co_return Result<void>();
}

// A step has at most a chunk's rows, since a ring has place for a window and these. Recurrent states are kept after
// kept_rows() rows, and after one row of each of many sequences.
DraftShape DeviceModel::draft_shape() const {
  const bool has_states = state_bytes(config_) != 0;
  if (has_many()) {
    const uint32_t most =
        std::min({tables_.sequences * kernels::kMostDraftRows, kernels::kMaxSequences, tables_.rows});
    return {.vocab_size = config_.vocab_size, .most_rows = has_states ? 1 : std::bit_floor(most)};
  }
  const uint32_t kept = has_states ? kept_rows(config_) : kernels::kMostDraftRows;
  return {.ctx_len = options_.ctx_len,
          .vocab_size = config_.vocab_size,
          .most_rows = options_.all_logits ? 1 : std::min(kept, options_.chunk)};
}

Task<Result<void>> DeviceModel::add_drafts(DraftNeed need, uint32_t slots) {
  return draft_plans_.add(
      need, slots,
      [this](gpu::PlanBuilder& builder, const PlanRow& row, const DraftNeed& of) {
        recorded_need_ = of;
        return record_plan(builder, row);
      },
      [this](gpu::PlanBuilder& builder) { return record_draft_text(builder); });
}

Result<void> DeviceModel::record_draft_text(gpu::PlanBuilder& builder) {
  const PlanRow row{.name = "draft.text"};
  builder.begin(row.name, row.max_rows);
  kernels::Context ctx = context_of(builder, row);
  ctx.op_label = "draft";
  DP_CHECK(
      kernels::record(ctx, kernels::TextFromRing{.text = draft_plans_.views().text, .ring = views_.ring}));
  builder.end();
  return {};
}

Result<void> DeviceModel::record_draft_begin(kernels::Context& ctx, const PlanRow& row) {
  if (has_many()) return {};  // the host writes the rows
  const kernels::TensorView text = draft_plans_.views().text;
  ctx.op_label = "draft";
  if (row.drafter == Drafter::kNextLayer) {
    return kernels::record(ctx, kernels::DraftBegin{.token = views_.token, .text = text});
  }
  if (row.drafter == Drafter::kGiven)
    return kernels::record(ctx, kernels::GivenDrafts{.text = text, .rows = row.max_rows});
  return kernels::record(ctx, kernels::LookupDrafts{.text = text,
                                                    .vocab_size = config_.vocab_size,
                                                    .rows = row.max_rows,
                                                    .fills = options_.simulated_drafts >= 0});
}

// After a chunk: the layer fills its cache, and after a prompt it drafts.
Result<void> DeviceModel::record_next(kernels::Context& ctx, lowering::Lowering& lowering,
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
  const DraftViews& draft = draft_plans_.views();
  DP_CHECK(kernels::record(one_row, kernels::Sample{.logits = views_.next_logits,
                                                    .token = draft.next,
                                                    .vocab_size = config_.vocab_size,
                                                    .greedy = true}));
  const uint64_t second = (kernels::kTextRows + 1) * kTokenBytes;
  return ctx.plan.copy(draft.next.sub(0, kTokenBytes), draft.text.sub(second, kTokenBytes), "draft");
}

// Records a choice for each row. A row sees the text that includes the drafts before it.
Result<void> DeviceModel::record_draft_choices(kernels::Context& ctx, const lowering::Logits& logits,
                                               const PlanRow& row) {
  const DraftViews& draft = draft_plans_.views();
  const DraftNeed& need = recorded_need_;
  ctx.op_label = "draft";
  if (need.penalties) {
    DP_CHECK(kernels::record(ctx, kernels::DraftCounts{.text = draft.text,
                                                       .counts = views_.counts,
                                                       .recent = views_.recent,
                                                       .out = draft.counts,
                                                       .vocab_size = config_.vocab_size,
                                                       .rows = row.max_rows}));
  }
  if (need.parts.all_samplers) {
    DP_CHECK(kernels::record(
        ctx, kernels::DraftMore{
                 .text = draft.text, .more = draft.past.more, .out = draft.more, .rows = row.max_rows}));
  }
  kernels::Sample sample = sample_of(logits, row, {});
  sample.token = draft.choices;
  sample.rows = row.max_rows;
  if (!row.greedy) {
    sample.params = draft.params;
    sample.bias = draft.bias;
    sample.counts = draft.counts;
  }
  if (need.parts.all_samplers) {
    sample.more = draft.more;
    sample.breakers = draft.breakers;
  }
  if (need.parts.masks) sample.mask = draft.masks;
  if (need.parts.logprobs) sample.logprobs = draft.past.logprobs;
  ctx.op_label = "sample";
  return kernels::record(ctx, sample);
}

Result<void> DeviceModel::record_kept_past(kernels::Context& ctx, const PlanRow& row) {
  if (!recorded_need_.parts.all_samplers) return {};
  const DraftViews& draft = draft_plans_.views();
  return kernels::record(
      ctx, kernels::KeptMore{.past = draft.more, .more = draft.past.more, .rows = row.max_rows});
}

Result<void> DeviceModel::record_many_draft_end(kernels::Context& ctx, const lowering::Logits& logits,
                                                const PlanRow& row) {
  const DraftViews& draft = draft_plans_.views();
  DP_CHECK(record_draft_choices(ctx, logits, row));
  ctx.op_label = "advance";
  DP_CHECK(kernels::record(ctx, kernels::AdvanceDrafts{.choices = draft.choices,
                                                       .text = draft.text,
                                                       .ring = views_.ring,
                                                       .counts = views_.counts,
                                                       .recent = views_.recent,
                                                       .vocab_size = config_.vocab_size,
                                                       .rows = row.max_rows,
                                                       .simulated = options_.simulated_drafts}));
  return record_kept_past(ctx, row);
}

Result<void> DeviceModel::record_draft_end(kernels::Context& ctx, const lowering::StepIo& io,
                                           const lowering::Logits& logits, const PlanRow& row,
                                           lowering::Lowering& lowering) {
  const DraftViews& draft = draft_plans_.views();
  const bool has_next = row.has_next(drafts_);
  DP_CHECK(record_draft_choices(ctx, logits, row));
  if (has_next) {
    DP_CHECK(lowering.run_next());
    ctx.op_label = "draft";
    DP_CHECK(kernels::record(ctx, kernels::Sample{.logits = views_.next_logits,
                                                  .token = draft.next,
                                                  .vocab_size = config_.vocab_size,
                                                  .rows = row.max_rows,
                                                  .greedy = true}));
  }
  ctx.op_label = "step";
  DP_CHECK(kernels::record(ctx, kernels::DraftEnd{.choices = draft.choices,
                                                  .text = draft.text,
                                                  .next = has_next ? draft.next : kernels::TensorView{},
                                                  .token = views_.token,
                                                  .ring = views_.ring,
                                                  .counts = views_.counts,
                                                  .recent = views_.recent,
                                                  .vocab_size = config_.vocab_size,
                                                  .rows = row.max_rows,
                                                  .simulated = options_.simulated_drafts}));
  DP_CHECK(record_kept_past(ctx, row));
  if (!options_.rules.has("step_tail")) return {};
  // The next step may be a plain one, which begins with its row.
  kernels::Context one_row = ctx;
  one_row.max_rows = 1;
  one_row.op_label = "next";
  lowering::PlanReport of_next_step;  // the plans of that step report its rules
  lowering::Lowering next_step(graph_, bound_, options_.rules, one_row, io, of_next_step);
  DP_TRY(kernels::EmbedNorm input, next_step.step_input());
  input.token = views_.token;
  return kernels::record(one_row, input);
}

}  // namespace doppler::model
