// DeviceModel's plans for many sequences: which there are, how their steps begin and end, and what SequencePlans gets.
// Read next: sequence_plans.h.
#include <algorithm>

#include "kernels/attention/attention.h"
#include "kernels/linear/linear.h"
#include "kernels/sample/sample.h"
#include "kernels/step/advance.h"
#include "kernels/step/arrange.h"
#include "model/load_estimate.h"
#include "model/plan_row.h"

namespace doppler::model {
namespace {

using lowering::LogitsRows;

// Rows that decode plans are made for, besides one for all slots. The exact lane has one plan for all numbers of rows.
constexpr uint64_t kLeastBuffer = 256;  // a part of a model may have no layer with keys and values

constexpr uint32_t kClasses[] = {1, 2, 4, 8, 16, 32};

std::vector<uint32_t> classes_of(const kernels::Policy& policy, uint32_t sequences) {
  if (policy.name == "exact") return {std::max(2u, sequences)};
  std::vector<uint32_t> classes;
  for (const uint32_t rows : kClasses) {
    if (rows < sequences) classes.push_back(rows);
  }
  classes.push_back(sequences);
  return classes;
}

// Classes that have a plan for short contexts besides. It changes the order of additions, so the exact lane has none.
std::vector<uint32_t> short_classes_of(const RunnerOptions& options, const gpu::Caps& caps,
                                       const formats::ModelConfig& config) {
  if (options.policy.name == "exact" || options.ctx_len <= kernels::kShortKeysOfRows) return {};
  std::vector<uint32_t> classes;
  for (const uint32_t rows : classes_of(options.policy, options.max_sequences)) {
    if (kernels::gains_by_short_keys(options.policy, caps, config.n_heads, config.n_kv_heads, rows)) {
      classes.push_back(rows);
    }
  }
  return classes;
}

// Rows that plans with pieces are made for: those of a chunk beside all slots, and as many as products of few rows
// take, if that leaves rows beside the slots.
std::vector<uint32_t> piece_classes_of(const kernels::StepTables& tables) {
  constexpr uint32_t kFew = kernels::kMaxNarrowRows;
  if (tables.sequences >= kFew || kFew >= tables.rows) return {tables.rows};
  return {kFew, tables.rows};
}

// With matrix units 32 rows of a prompt take nearly as long as 256: 16.6 and 20.7 ms on an H200 (8B in Q4_K), 512 take
// 31.7.
uint32_t prompt_share_of(const kernels::Policy& policy, const gpu::Caps& caps) {
  constexpr uint32_t kOnMatrixUnits = 256;
  return caps.matrix_f16 && policy.allows(kernels::Lane::kMatrix) ? kOnMatrixUnits : kPiecesBesideDecoding;
}

}  // namespace

void DeviceModel::make_tables() {
  if (options_.max_sequences == 0) return;
  tables_ = {.sequences = options_.max_sequences,
             .rows = options_.chunk + options_.max_sequences,
             .blocks = (options_.ctx_len + options_.block_len - 1) / options_.block_len,
             .block_len = options_.block_len,
             .has_windows = options_.window_tokens != 0};
}

std::vector<PlanRow> DeviceModel::many_plan_rows() const {
  std::vector<PlanRow> rows;
  for (const uint32_t most : piece_classes_of(tables_)) {
    const std::string name = "many.pieces." + std::to_string(most);
    rows.push_back({name, most, LogitsRows::kNone});
    rows.push_back({name + ".greedy", most, LogitsRows::kSampled});
    rows.push_back({name + ".sample", most, LogitsRows::kSampled, false});
  }
  if (images_) {
    const auto add = [&](const char* name, LogitsRows logits_rows, bool greedy) {
      rows.push_back({.name = name,
                      .max_rows = tables_.rows,
                      .logits_rows = logits_rows,
                      .greedy = greedy,
                      .images = true});
    };
    add("many.images", LogitsRows::kNone, true);
    add("many.images.greedy", LogitsRows::kSampled, true);
    add("many.images.sample", LogitsRows::kSampled, false);
  }
  for (const uint32_t most : classes_of(options_.policy, tables_.sequences)) {
    const std::string name = "many." + std::to_string(most);
    rows.push_back({name + ".greedy", most, LogitsRows::kAll});
    rows.push_back({name + ".sample", most, LogitsRows::kAll, false});
  }
  for (const uint32_t most : short_classes_of(options_, device_.caps(), config_)) {
    const std::string name = "many." + std::to_string(most) + ".short";
    rows.push_back({name + ".greedy", most, LogitsRows::kAll, true, kernels::kShortKeysOfRows});
    rows.push_back({name + ".sample", most, LogitsRows::kAll, false, kernels::kShortKeysOfRows});
  }
  return rows;
}

Result<void> DeviceModel::record_arrange(gpu::PlanBuilder& builder) {
  builder.begin("many.arrange", 1);
  kernels::Context ctx{.plan = builder,
                       .policy = options_.policy,
                       .choices = choices_,
                       .state = views_.state,
                       .max_rows = 1,
                       .op_label = "arrange",
                       .tables = tables_};
  reports_.push_back({.plan = "many.arrange"});
  DP_CHECK(kernels::record(ctx, kernels::Arrange{.tokens = views_.tokens}));
  builder.end();
  return {};
}

// Counts the rows that choose a token.
kernels::Context DeviceModel::context_of_slots(const kernels::Context& ctx, const PlanRow& row) const {
  kernels::Context of_slots = ctx;
  if (row.logits_rows == LogitsRows::kSampled) of_slots.max_rows = of_slots.fixed_rows = tables_.sequences;
  return of_slots;
}

// Behind the logits: each chosen row's token, and the tables of the next step.
Result<void> DeviceModel::record_many_end(kernels::Context& ctx, const lowering::StepIo& io,
                                          const lowering::Logits& logits, const PlanRow& row) {
  if (row.logits_rows == LogitsRows::kNone || !ends_model()) return {};
  if (row.is_draft()) return record_many_draft_end(ctx, logits, row);
  DP_CHECK(record_first_choice(ctx, io, logits, row));
  kernels::Context of_slots = context_of_slots(ctx, row);
  of_slots.op_label = "advance";
  return kernels::record(of_slots, kernels::Advance{.token = views_.token,
                                                    .ring = views_.ring,
                                                    .counts = views_.counts,
                                                    .recent = views_.recent,
                                                    .tokens = views_.tokens,
                                                    .vocab_size = config_.vocab_size});
}

Task<Result<void>> DeviceModel::make_many() {
  SequenceBuffers buffers{
      .state = state_,
      .tokens = tokens_,
      .params = params_,
      .bias = bias_,
      .counts = counts_,
      .recent = recent_,
      .ring = ring_,
      .table = host_table_.get(),
      .caches = cache_.places(),
      .states = states_.empty() ? nullptr : &states_,
      .adapters = &adapters_,
      .checkpoints = states_.empty() ? 0 : options_.checkpoints,
      .window = tables_.has_windows ? read_positions(config_) : 0,
      .window_blocks = options_.window_tokens / tables_.block_len,
      .prompt_share = prompt_share_of(options_.policy, device_.caps()),
      .images = image_inputs(),
      .drafts = &draft_plans_,
      .add_drafts = [this](DraftNeed need, uint32_t slots) { return add_drafts(need, slots); }};
  if (stream_out_.valid()) {
    buffers.stream = &stream_out_;
    buffers.endings = {.greedy = "", .sample = ""};
  }
  const uint64_t block_bytes =
      std::max({buffers.block_bytes(false), buffers.block_bytes(true), kLeastBuffer});
  gpu::BufferDesc desc{
      .name = "block", .bytes = (block_bytes + 255) / 256 * 256, .use = gpu::BufferUse::kStorage};
  DP_CO_TRY(gpu::Buffer made, co_await device_.create_buffer(std::move(desc)));
  buffers_.push_back(std::make_unique<gpu::Buffer>(std::move(made)));
  buffers.block = buffers_.back().get();
  many_ = std::make_unique<SequencePlans>(device_, std::move(buffers), tables_, options_.ctx_len,
                                          options_.pool_tokens / tables_.block_len, config_.vocab_size,
                                          options_.tickets, classes_of(options_.policy, tables_.sequences),
                                          piece_classes_of(tables_), built_.plans, choice_plans_,
                                          [this](SamplerParts parts) { return add_choices(parts); });
  runner_ = many_.get();
  if (pager_) make_paged(*many_);
  co_return co_await many_->make_readback(options_.block_reads);
}

}  // namespace doppler::model
