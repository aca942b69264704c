// PlanRunner's plans of one sequence: which there are, and how each is recorded. Read next: plan_runner_many.cpp and
// plan_runner_draft.cpp, which have the others.
#include <algorithm>

#include "kernels/attention/attention.h"
#include "kernels/linear/linear.h"
#include "kernels/step/next.h"
#include "lowering/lowering.h"
#include "model/plan_row.h"

namespace doppler::model {

using lowering::LogitsRows;

Result<void> PlanRunner::record_plan(gpu::PlanBuilder& builder, const PlanRow& row) {
  builder.begin(row.name, row.max_rows);
  kernels::Context ctx{.plan = builder,
                       .policy = options_.policy,
                       .choices = choices_,
                       .state = views_.state,
                       .max_rows = row.max_rows,
                       .op_label = {},
                       .tables = tables_,
                       .drafts = drafts_};
  const bool has_tail = options_.rules.has("step_tail");
  lowering::StepIo io{
      .row = views_.row,
      .normed_row = views_.normed_row,
      .begins_with_row = row.is_decode() && has_tail,
      .tokens = row.is_draft()    ? views_.drafts
                : row.is_decode() ? views_.token
                                  : views_.tokens,
      .token_types = views_.token_types,
      .cache = cache_.views(),
      .states = states_.views(),
      .logits_rows = row.logits_rows,
      .max_keys = row.max_keys,
      .greedy = row.greedy,
      .logits = views_.logits,
      .persistent = row.max_keys != 0 || row.only_persistent ? persistent_ : lowering::PersistentIo{},
      .paged = paged_,
      .hidden = row.logits_rows == LogitsRows::kAll ? views_.hidden : kernels::TensorView{}};
  if (has_many()) {
    // What a sequence gets must not depend on its company: the same products in all plans, the same attention of pieces.
    if (options_.policy.name == "exact") ctx.least_rows = kernels::kMaxNarrowRows + 1;
    io.sampled_state = views_.state.sub(kernels::StepTables::sampled_state(), sizeof(kernels::StepState));
    io.single_rows = row.logits_rows == LogitsRows::kAll ? row.max_rows : tables_.sequences;
    // Tiles of few rows walk over all keys one after the other (kernels/attention/variants.cpp).
    io.attends_each_row = row.max_rows <= kernels::kMaxNarrowRows && has_narrow_plans();
  }
  if (row.has_next(drafts_)) {
    io.next = {.tokens = row.is_draft() ? views_.choices : views_.behind, .logits = views_.next_logits};
  }
  io.keeps_rows = row.is_draft();
  reports_.push_back({.plan = row.name});
  if (row.is_draft()) DP_CHECK(record_draft_begin(ctx));
  lowering::Lowering lowering(graph_, bound_, options_.rules, ctx, io, reports_.back());
  const Result<lowering::Logits> logits = lowering.run();
  DP_CHECK_WHILE(logits, "recording the plan %s", row.name.c_str());
  DP_CHECK_WHILE(
      has_many() ? record_many_end(ctx, *logits, row) : record_end(ctx, io, *logits, row, lowering),
      "recording the plan %s", row.name.c_str());
  builder.end();
  return {};
}

kernels::Sample PlanRunner::sample_of(const lowering::Logits& logits, const PlanRow& row) const {
  return {.logits = logits.all,
          .best = logits.best,
          .best_count = logits.best_count,
          .params = views_.params,
          .bias = views_.bias,
          .counts = views_.counts,
          .token = views_.token,
          .logprobs = row.greedy ? kernels::TensorView{} : views_.logprobs,
          .more = row.greedy ? kernels::TensorView{} : views_.more,
          .breakers = row.greedy ? kernels::TensorView{} : views_.breakers,
          .mask = row.greedy ? kernels::TensorView{} : views_.mask,
          .vocab_size = config_.vocab_size,
          .greedy = row.greedy};
}

// Behind the logits: the choice of the token, the end of the step, and what the next one begins with.
Result<void> PlanRunner::record_end(kernels::Context& ctx, const lowering::StepIo& io,
                                    const lowering::Logits& logits, const PlanRow& row,
                                    lowering::Lowering& lowering) {
  if (row.is_draft()) return record_draft_end(ctx, lowering, logits, row);
  kernels::Step step{.token = {},
                     .ring = views_.ring,
                     .counts = views_.counts,
                     .recent = views_.recent,
                     .vocab_size = config_.vocab_size};
  if (row.logits_rows != LogitsRows::kLast) {
    if (row.has_next(drafts_)) DP_CHECK(record_next(ctx, lowering, row));
    ctx.op_label = "step";
    return kernels::record(ctx, step);
  }
  kernels::Context one_row = ctx;  // from here on
  one_row.max_rows = 1;
  const kernels::Sample sample = sample_of(logits, row);
  if (!options_.rules.has("step_tail")) {
    one_row.op_label = "sample";
    DP_CHECK(kernels::record(one_row, sample));
    if (row.has_next(drafts_)) DP_CHECK(record_next(ctx, lowering, row));
    one_row.op_label = "step";
    step.token = sample.token;
    return kernels::record(one_row, step);
  }
  lowering::PlanReport of_next_step;  // the plans of that step report its rules
  lowering::Lowering next_step(graph_, bound_, options_.rules, one_row, io, of_next_step);
  DP_TRY(kernels::EmbedNorm input, next_step.step_input());
  one_row.op_label = "next";
  return kernels::record(one_row, kernels::Next{.sample = sample, .step = step, .input = input});
}

std::vector<PlanRunner::PlanRow> PlanRunner::plan_rows() const {
  if (has_many()) return many_plan_rows();
  std::vector<PlanRow> rows;
  for (const RowClass& of : row_classes()) {
    const std::string name(of.name);
    if (options_.all_logits) {
      rows.push_back({name + ".logits", of.rows, LogitsRows::kAll, false});
      continue;
    }
    rows.push_back({name, of.rows, LogitsRows::kNone});
    rows.push_back({name + ".greedy", of.rows});
    rows.push_back({name + ".sample", of.rows, LogitsRows::kLast, false});
  }
  if (options_.all_logits) return rows;
  rows.insert(rows.end(), {{"decode.greedy", 1},
                           {"decode.sample", 1, LogitsRows::kLast, false},
                           {"decode.short.greedy", 1, LogitsRows::kLast, true, kernels::kShortKeys},
                           {"decode.short.sample", 1, LogitsRows::kLast, false, kernels::kShortKeys},
                           {"decode.long.greedy", 1, LogitsRows::kLast, true, 0, true},
                           {"decode.long.sample", 1, LogitsRows::kLast, false, 0, true}});
  if (drafts_) {
    rows.push_back({"draft.greedy", 2, LogitsRows::kAll});
    rows.push_back({"draft.sample", 2, LogitsRows::kAll, false});
  }
  std::erase_if(rows, [&](const PlanRow& row) {
    // The lane persistent has decode.greedy and decode.sample to fall back to.
    if (row.max_keys >= options_.ctx_len && !exchange_) return true;
    return row.only_persistent && (!exchange_ || options_.ctx_len <= kernels::kShortKeys);
  });
  return rows;
}

Result<void> PlanRunner::record_plans(gpu::PlanBuilder& builder) {
  if (has_many()) DP_CHECK(record_arrange(builder));
  for (const PlanRow& row : plan_rows()) DP_CHECK(record_plan(builder, row));
  return {};
}

}  // namespace doppler::model
