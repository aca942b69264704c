// DeviceModel's plans and buffers of a part of a model, whose other layers lie on other devices. A part that does not
// begin the model reads the residual stream, and one that does not end it leaves the stream for the next part. Read
// next: split_sequence_native.h.
#include <algorithm>

#include "kernels/attention/attention.h"
#include "lowering/lowering.h"
#include "model/device_model.h"
#include "model/plan_row.h"

namespace doppler::model {

using lowering::LogitsRows;

// Nothing is chosen in such a part, so that a plan serves greedy and sampled steps.
std::vector<PlanRow> DeviceModel::plan_rows_of_part() const {
  std::vector<PlanRow> rows;
  if (has_many()) {
    rows = many_plan_rows();
    std::erase_if(rows,
                  [](const PlanRow& row) { return row.logits_rows == LogitsRows::kSampled || !row.greedy; });
    for (PlanRow& row : rows) {
      if (row.name.ends_with(".greedy"))
        row.name.resize(row.name.size() - std::string_view(".greedy").size());
    }
    return rows;
  }
  for (const RowClass& of : row_classes()) {
    const std::string name(of.name);
    rows.push_back(options_.all_logits ? PlanRow{name + ".logits", of.rows, LogitsRows::kAll}
                                       : PlanRow{name, of.rows, LogitsRows::kNone});
  }
  if (options_.all_logits) return rows;
  rows.push_back({"decode", 1, LogitsRows::kNone});
  if (options_.ctx_len > kernels::kShortKeys) {
    rows.push_back({"decode.short", 1, LogitsRows::kNone, true, kernels::kShortKeys});
  }
  return rows;
}

// With the rule step_tail the step before makes a step's first row, since it chooses the token. Here the token comes
// from another device, and the step itself makes that row.
Result<void> DeviceModel::record_step_input(kernels::Context ctx, const lowering::StepIo& io) {
  lowering::PlanReport of_input;  // the plan itself reports its rules
  lowering::Lowering lowering(graph_, bound_, options_.rules, ctx, io, of_input);
  DP_TRY(kernels::EmbedNorm input, lowering.step_input());
  input.token = io.tokens;
  ctx.op_label = "row";
  return kernels::record(ctx, input);
}

Task<Result<void>> DeviceModel::make_stream_buffers(gpu::PlanBuilder& builder) {
  const uint64_t row_bytes = uint64_t{config_.hidden_dim} * sizeof(float);
  if (!formats::begins_model(config_)) {
    DP_CO_TRY(const gpu::Buffer* const made,
              co_await buffer(builder, "stream", step_rows() * row_bytes, &views_.stream));
    stream_in_ = StreamIn(made);
  }
  if (ends_model() || options_.all_logits) co_return Result<void>();
  DP_CO_TRY(gpu::ReadbackRing ring,
            co_await device_.create_readback_ring(options_.tickets, step_rows() * row_bytes));
  stream_out_ = StreamOut(logits_, std::move(ring), row_bytes);
  co_return Result<void>();
}

}  // namespace doppler::model
