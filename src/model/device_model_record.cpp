// DeviceModel's plans of one sequence: which there are, and how each is recorded. Read next: device_model_many.cpp and
// device_model_draft.cpp, which have the others.
#include <algorithm>

#include "kernels/attention/attention.h"
#include "kernels/linear/linear.h"
#include "kernels/step/next.h"
#include "lowering/lowering.h"
#include "model/device_model.h"
#include "model/plan_row.h"

namespace doppler::model {

using lowering::LogitsRows;

namespace {

kernels::TensorView draft_rows_of(const kernels::TensorView& text, uint32_t rows) {
  return text.sub(kernels::kTextRows * sizeof(uint32_t), rows * sizeof(uint32_t));
}

}  // namespace

kernels::Context DeviceModel::context_of(gpu::PlanBuilder& builder, const PlanRow& row) {
  kernels::Context ctx{.plan = builder,
                       .policy = options_.policy,
                       .choices = choices_,
                       .state = views_.state,
                       .max_rows = row.max_rows,
                       .op_label = {},
                       .tables = tables_,
                       .least_rows = least_rows(),
                       .drafts = drafts_};
  return ctx;
}

// A sequence's tokens must not depend on its company: the same products in all plans, the same attention of pieces.
uint32_t DeviceModel::least_rows() const {
  return has_many() && options_.policy.name == "exact" ? kernels::kMaxNarrowRows + 1 : 0;
}

lowering::StepIo DeviceModel::io_of(const PlanRow& row) const {
  const DraftViews& draft = draft_plans_.views();
  lowering::StepIo io{
      .row = views_.row,
      .normed_row = views_.normed_row,
      .begins_with_row = row.is_decode() && options_.rules.has("step_tail"),
      .tokens = row.is_draft()                    ? draft_rows_of(draft.text, row.max_rows)
                : row.is_decode() && ends_model() ? views_.token
                                                  : views_.tokens,
      .token_types = views_.token_types,
      .cache = cache_.views(),
      .states = states_.views(),
      .logits_rows = ends_model() ? row.logits_rows : LogitsRows::kAll,
      .max_keys = row.max_keys,
      .greedy = row.greedy,
      .logits = row.is_draft() ? draft.logits : views_.logits,
      .persistent = row.max_keys != 0 || row.only_persistent ? persistent_ : lowering::PersistentIo{},
      .paged = paged_,
      .inputs = {views_.stream},
      .hidden = row.logits_rows == LogitsRows::kAll ? views_.hidden : kernels::TensorView{}};
  if (has_many()) {
    io.sampled_state = views_.state.sub(kernels::StepTables::sampled_state(), sizeof(kernels::StepState));
    io.single_rows = row.logits_rows == LogitsRows::kAll ? row.max_rows : tables_.sequences;
    // Tiles of few rows walk over all keys one after the other (kernels/attention/variants.cpp).
    io.attends_each_row = row.max_rows <= kernels::kMaxNarrowRows && has_narrow_plans();
  }
  if (row.has_next(drafts_)) {
    io.next = {.tokens = row.is_draft() ? draft.choices : views_.behind, .logits = views_.next_logits};
  }
  io.keeps_rows = row.is_draft();
  set_image_io(row, io);
  return io;
}

Result<void> DeviceModel::record_plan(gpu::PlanBuilder& builder, const PlanRow& row) {
  builder.begin(row.name, row.max_rows);
  kernels::Context ctx = context_of(builder, row);
  const lowering::StepIo io = io_of(row);
  reports_.push_back({.plan = row.name});
  if (row.is_draft()) DP_CHECK(record_draft_begin(ctx, row));
  if (io.begins_with_row && !ends_model()) DP_CHECK(record_step_input(ctx, io));
  lowering::Lowering lowering(row.images ? image_graph_ : graph_, row.images ? image_bound_ : bound_,
                              options_.rules, ctx, io, reports_.back());
  const Result<lowering::Logits> logits = lowering.run();
  DP_CHECK_WHILE(logits, "recording the plan %s", row.name.c_str());
  DP_CHECK_WHILE(
      has_many() ? record_many_end(ctx, io, *logits, row) : record_end(ctx, io, *logits, row, lowering),
      "recording the plan %s", row.name.c_str());
  builder.end();
  return {};
}

kernels::Sample DeviceModel::sample_of(const lowering::Logits& logits, const PlanRow& row,
                                       const ChoiceViews& views) const {
  return {.logits = logits.all,
          .best = logits.best,
          .best_count = logits.best_count,
          .params = views_.params,
          .bias = views_.bias,
          .counts = views_.counts,
          .token = views_.token,
          .logprobs = views.logprobs,
          .more = views.more,
          .breakers = views.breakers,
          .mask = views.mask,
          .vocab_size = config_.vocab_size,
          .greedy = row.greedy};
}

// The choice of the token; with the rule step_tail the end of the step too, and what the next one begins with.
Result<void> DeviceModel::record_choice(kernels::Context ctx, const lowering::StepIo& io,
                                        const lowering::Logits& logits, const PlanRow& row,
                                        const ChoiceViews& views) {
  const kernels::Sample sample = sample_of(logits, row, views);
  ctx.op_label = "sample";
  if (has_many()) {
    kernels::Context of_slots = context_of_slots(ctx, row);
    return kernels::record(of_slots, sample);
  }
  ctx.max_rows = 1;
  if (!options_.rules.has("step_tail")) return kernels::record(ctx, sample);
  lowering::PlanReport of_next_step;  // the plans of that step report its rules
  lowering::Lowering next_step(graph_, bound_, options_.rules, ctx, io, of_next_step);
  DP_TRY(kernels::EmbedNorm input, next_step.step_input());
  ctx.op_label = "next";
  const kernels::Step step{.token = {},
                           .ring = views_.ring,
                           .counts = views_.counts,
                           .recent = views_.recent,
                           .vocab_size = config_.vocab_size};
  return kernels::record(ctx, kernels::Next{.sample = sample, .step = step, .input = input});
}

// As all generations have it; what some ask for besides takes its place (choice_plans.h).
Result<void> DeviceModel::record_first_choice(kernels::Context& ctx, const lowering::StepIo& io,
                                              const lowering::Logits& logits, const PlanRow& row) {
  const uint32_t first = ctx.plan.command_count();
  DP_CHECK(record_choice(ctx, io, logits, row, {}));
  if (!row.greedy) choice_plans_.add_section({.row = row, .first = first, .end = ctx.plan.command_count()});
  return {};
}

Result<void> DeviceModel::record_choice_plan(gpu::PlanBuilder& builder, const PlanRow& row,
                                             const std::string& name, const ChoiceViews& views) {
  builder.begin(name, row.max_rows);
  DP_CHECK_WHILE(
      record_choice(context_of(builder, row), io_of(row), {.all = views_.logits, .best = {}}, row, views),
      "recording the plan %s", name.c_str());
  builder.end();
  return {};
}

Task<Result<void>> DeviceModel::add_choices(SamplerParts parts) {
  return choice_plans_.add(
      parts, built_.plans,
      [this](gpu::PlanBuilder& builder, const PlanRow& row, const std::string& name,
             const ChoiceViews& views) { return record_choice_plan(builder, row, name, views); });
}

// Behind the logits: the choice of the token, the end of the step, and what the next one begins with.
Result<void> DeviceModel::record_end(kernels::Context& ctx, const lowering::StepIo& io,
                                     const lowering::Logits& logits, const PlanRow& row,
                                     lowering::Lowering& lowering) {
  if (row.is_draft()) return record_draft_end(ctx, io, logits, row, lowering);
  kernels::Step step{.token = {},
                     .ring = views_.ring,
                     .counts = views_.counts,
                     .recent = views_.recent,
                     .vocab_size = config_.vocab_size};
  const bool chooses = row.logits_rows == LogitsRows::kLast;
  if (chooses) {
    DP_CHECK(record_first_choice(ctx, io, logits, row));
    if (options_.rules.has("step_tail")) return {};
  }
  if (row.has_next(drafts_)) DP_CHECK(record_next(ctx, lowering, row));
  kernels::Context of_step = ctx;
  of_step.op_label = "step";
  if (chooses) {
    of_step.max_rows = 1;
    step.token = views_.token;
  }
  return kernels::record(of_step, step);
}

std::vector<PlanRow> DeviceModel::plan_rows() const {
  if (!ends_model()) return plan_rows_of_part();
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
  if (images_) {
    const auto add = [&](const char* name, LogitsRows logits_rows, bool greedy) {
      rows.push_back({.name = name,
                      .max_rows = options_.chunk,
                      .logits_rows = logits_rows,
                      .greedy = greedy,
                      .images = true});
    };
    if (options_.all_logits) {
      add("images.logits", LogitsRows::kAll, false);
    } else {
      add("images", LogitsRows::kNone, true);
      add("images.greedy", LogitsRows::kLast, true);
      add("images.sample", LogitsRows::kLast, false);
    }
  }
  if (options_.all_logits) return rows;
  rows.insert(rows.end(), {{"decode.greedy", 1},
                           {"decode.sample", 1, LogitsRows::kLast, false},
                           {"decode.short.greedy", 1, LogitsRows::kLast, true, kernels::kShortKeys},
                           {"decode.short.sample", 1, LogitsRows::kLast, false, kernels::kShortKeys},
                           {"decode.long.greedy", 1, LogitsRows::kLast, true, 0, true},
                           {"decode.long.sample", 1, LogitsRows::kLast, false, 0, true}});
  std::erase_if(rows, [&](const PlanRow& row) {
    // The lane persistent has decode.greedy and decode.sample to fall back to.
    if (row.max_keys >= options_.ctx_len && !exchange_) return true;
    return row.only_persistent && (!exchange_ || options_.ctx_len <= kernels::kShortKeys);
  });
  return rows;
}

Result<void> DeviceModel::record_plans(gpu::PlanBuilder& builder) {
  if (has_many()) DP_CHECK(record_arrange(builder));
  for (const PlanRow& row : plan_rows()) DP_CHECK(record_plan(builder, row));
  return {};
}

}  // namespace doppler::model
