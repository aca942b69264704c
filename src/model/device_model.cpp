// The choice of the plan to replay, and the runners that replay plans. Loading and recording: device_model_load.cpp.
#include "model/device_model.h"

#include <algorithm>

#include "base/log.h"
#include "kernels/attention/attention.h"
#include "kernels/linear/linear.h"
#include "kernels/step/step.h"

namespace doppler::model {

Result<void> check_writes_text(const formats::ModelConfig& config) {
  if (!formats::is_embedding_model(config)) return {};
  return fail(ErrorKind::kUnsupported,
              "The model %s gives %s of texts and writes none: use doppler embed or rerank.",
              config.name.c_str(), config.pooling.n_classes != 0 ? "scores" : "embeddings");
}

std::string DeviceModel::why_not_persistent() const {
  if (!formats::is_whole(config_)) return "its layers lie on several devices";
  if (options_.expert_slots != 0) return "experts are paged, and it does not stop for them";
  if (has_many()) return "the model is loaded for several sequences, and it knows no tables of blocks";
  if (images_) return "the model reads pictures, which shift its positions";
  if (options_.adapters.slots != 0) return "the model has room for adapters, which it does not add";
  if (!formats::has_equal_caches(config_)) return "the caches of the layers differ";
  return "";
}

// A tuning asks for the lane by itself, so only a user's own word is worth a warning.
void DeviceModel::tell_of_persistent() const {
  const std::string reason = why_not_persistent();
  if (!options_.policy.allows(kernels::Lane::kPersistent) || options_.all_logits || reason.empty()) return;
  log(options_.policy.name == "persistent" ? LogLevel::kWarning : LogLevel::kInfo,
      "decode_layers.persistent is not used: %s.", reason.c_str());
}

Task<Result<void>> DeviceModel::make_one() {
  watch_ = make_watch();
  one_ = std::make_unique<OneSequence>(
      device_, OneSequenceParts{
                   .state = state_,
                   .tokens = tokens_,
                   .params = params_,
                   .bias = bias_,
                   .counts = counts_,
                   .recent = recent_,
                   .ring = ring_,
                   .table = host_table_.get(),
                   .cache = &cache_,
                   .states = &states_,
                   .choices = &choice_plans_,
                   .adapters = &adapters_,
                   .drafts = &draft_plans_,
                   .watch = watch_.get(),
                   .has_next_layer = drafts_,
                   .drafts_by_host = host_table_ != nullptr || pager_ != nullptr,
                   .ctx_len = options_.ctx_len,
                   .chunk = options_.chunk,
                   .vocab_size = config_.vocab_size,
                   .tickets = options_.tickets,
                   .decode_plan = [this](bool greedy, uint32_t keys) -> const gpu::Plan& {
                     return decode_plan(greedy, keys);
                   },
                   .prompt_plan = [this](std::string_view kind, uint32_t rows) -> const gpu::Plan& {
                     return plan_of_rows(kind, rows);
                   },
                   .images = image_inputs(),
                   .image_plan = [this](std::string_view kind) -> const gpu::Plan& {
                     return plan("images" + std::string(kind));
                   },
                   .add_choices = [this](SamplerParts parts) { return add_choices(parts); },
                   .add_drafts = [this](DraftNeed need, uint32_t slots) { return add_drafts(need, slots); },
                   .stream = stream_out_.valid() ? &stream_out_ : nullptr});
  runner_ = one_.get();
  if (pager_) make_paged(*one_);
  auto making = one_->make_readback();
  co_return co_await std::move(making);
}

void DeviceModel::make_all_rows() {
  AllRowsParts parts{
      .state = state_,
      .tokens = tokens_,
      .token_types = token_types_,
      .logits = logits_,
      .hidden = hidden_,
      .next_logits = next_logits_,
      .table = host_table_.get(),
      .cache = &cache_,
      .states = &states_,
      .ctx_len = options_.ctx_len,
      .chunk = options_.chunk,
      .result_dim = result_dim(),
      .plan = [this](uint32_t rows) -> const gpu::Plan& { return plan_of_rows(".logits", rows); },
      .last_part = {},
      .images = image_inputs(),
      .image_plan = [this]() -> const gpu::Plan& { return plan("images.logits"); }};
  if (pager_) parts.last_part = part_runner();
  all_rows_ = std::make_unique<AllRows>(device_, config_, std::move(parts));
}

const gpu::Plan& DeviceModel::plan(std::string_view name) const {
  const auto it = std::ranges::find(built_.plans, name, &gpu::Plan::name);
  return it == built_.plans.end() ? built_.plans.front() : *it;  // names are those of record_plans()
}

// On a CPU, and in the exact lane, products of 17 to 64 rows are those of larger chunks.
bool DeviceModel::has_narrow_plans() const {
  return options_.policy.name != "exact" && device_.caps().type != gpu::AdapterType::kCpu;
}

// The classes for several rows of one sequence, the largest first.
std::vector<DeviceModel::RowClass> DeviceModel::row_classes() const {
  constexpr uint32_t kSkinny = kernels::kMaxSkinnyRows, kNarrow = kernels::kMaxNarrowRows;
  std::vector<RowClass> classes = {{"prefill", options_.chunk}};
  if (options_.chunk > kNarrow && has_narrow_plans()) classes.push_back({"narrow", kNarrow});
  if (options_.chunk > kSkinny) classes.push_back({"skinny", kSkinny});
  return classes;
}

const gpu::Plan& DeviceModel::plan_of_rows(std::string_view kind, uint32_t rows) const {
  std::string_view name;
  for (const RowClass& of : row_classes()) {
    if (rows <= of.rows) name = of.name;
  }
  // A part of a model chooses no tokens.
  const std::string_view ending = ends_model() || options_.all_logits ? kind : std::string_view();
  return plan(std::string(name) + std::string(ending));
}

const gpu::Plan& DeviceModel::decode_plan(bool greedy, uint32_t keys) const {
  const bool has_short = options_.ctx_len > kernels::kShortKeys || uses_persistent();
  if (!ends_model()) return plan(keys <= kernels::kShortKeys && has_short ? "decode.short" : "decode");
  if (keys <= kernels::kShortKeys && has_short && !persistent_refused_) {
    return plan(greedy ? "decode.short.greedy" : "decode.short.sample");
  }
  if (uses_persistent()) return plan(greedy ? "decode.long.greedy" : "decode.long.sample");
  return plan(greedy ? "decode.greedy" : "decode.sample");
}
const gpu::Plan& DeviceModel::prefill_plan(uint32_t rows) const { return plan_of_rows(".greedy", rows); }

}  // namespace doppler::model
