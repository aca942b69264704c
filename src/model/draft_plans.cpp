#include "model/draft_plans.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>

#include "base/bytes.h"
#include "base/log.h"
#include "gpu/objects_made.h"

namespace doppler::model {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kDraftPlansWord = sizeof(uint32_t);
constexpr uint32_t kDraftNextRows = 2;  // of a step with a next-token layer

std::string name_of(const DraftNeed& need, uint32_t rows) {
  return format_text("draft.%s.%u.%s", drafter_name(need.drafter), rows, need.greedy ? "greedy" : "sample") +
         (need.penalties ? ".penalties" : "") + (need.parts.all_samplers ? ".samplers" : "") +
         (need.parts.logprobs ? ".logprobs" : "") + (need.parts.masks ? ".masks" : "");
}

}  // namespace

const char* drafter_name(Drafter drafter) {
  switch (drafter) {
    case Drafter::kLookup:
      return "lookup";
    case Drafter::kNextLayer:
      return "next";
    case Drafter::kModel:
      return "model";
    case Drafter::kGiven:
      return "given";
    default:
      return "none";
  }
}

Task<Result<gpu::Buffer*>> DraftPlans::buffer(gpu::Device& device, gpu::PlanBuilder& builder,
                                              const char* name, uint64_t bytes, kernels::TensorView* view) {
  gpu::BufferDesc desc{.name = name, .bytes = (bytes + 255) / 256 * 256, .use = gpu::BufferUse::kStorage};
  DP_CO_TRY(gpu::Buffer made, co_await device.create_buffer(std::move(desc)));
  buffers_.push_back(std::move(made));
  *view = builder.external(buffers_.back());
  co_return &buffers_.back();
}

Task<Result<void>> DraftPlans::make_text(gpu::Device& device, gpu::PlanBuilder& builder) {
  if (text_) co_return Result<void>();
  // A prediction as long as the context, and a word between.
  places_ = shape_.ctx_len == 0 ? 0 : 2 * shape_.ctx_len + 1;
  DP_CO_TRY(text_, co_await buffer(device, builder, "draft_text",
                                   kernels::text_words(places_) * kDraftPlansWord, &views_.text));
  views_.text.bytes = kernels::text_words(places_) * kDraftPlansWord;
  co_return Result<void>();
}

Task<Result<void>> DraftPlans::make_buffers(gpu::Device& device, gpu::PlanBuilder& builder,
                                            DraftShape shape) {
  shape_ = shape;
  DP_CO_CHECK(co_await make_text(device, builder));
  [[maybe_unused]] gpu::Buffer* made = nullptr;
  DP_CO_TRY(made,
            co_await buffer(device, builder, "next_drafts", kDraftNextRows * kDraftPlansWord, &views_.next));
  co_return Result<void>();
}

void DraftPlans::begin(gpu::Device& device, gpu::PlanBuilder builder, DraftShape shape,
                       const ChoicePlans& choices) {
  device_ = &device;
  choices_ = &choices;
  builder_ = std::move(builder);
  shape_ = shape;
}

// In steps of several sequences each new plan of drawn choices does all that those before did. So there are few.
DraftNeed DraftPlans::need_to_make(DraftNeed need) const {
  for (const Made& made : made_) {
    if (is_shared() && !need.greedy && !made.need.greedy) need = together(need, made.need);
  }
  return need;
}

// The rows of the plan that add() makes next, so that slots have 1 to kMostDraftRows rows each. 0: all are there.
uint32_t DraftPlans::next_rows(const DraftNeed& need, uint32_t slots) const {
  const auto made = std::ranges::find(made_, need, &Made::need);
  const uint32_t most = std::min(shape_.most_rows, std::bit_ceil(slots * kernels::kMostDraftRows));
  for (const DraftKind& kind : kDraftKinds) {
    const bool fits = kind.drafter == need.drafter && kind.rows > slots && kind.rows <= most;
    if (fits && (made == made_.end() || !std::ranges::binary_search(made->rows, kind.rows))) return kind.rows;
  }
  return 0;
}

// If several serve, the first made does the least.
const DraftPlans::Made* DraftPlans::find(const DraftNeed& need) const {
  const auto exact = std::ranges::find(made_, need, &Made::need);
  if (exact != made_.end()) return &*exact;
  const auto more = std::ranges::find_if(made_, [&](const Made& made) { return covers(made.need, need); });
  return is_shared() && more != made_.end() ? &*more : nullptr;
}

std::span<const uint32_t> DraftPlans::rows(const DraftNeed& need) const {
  const Made* const made = find(need);
  return made ? std::span<const uint32_t>(made->rows) : std::span<const uint32_t>();
}

bool DraftPlans::may_add(const DraftNeed& need, uint32_t slots) const {
  const DraftNeed to_make = need_to_make(need);
  return device_ && next_rows(to_make, slots) != 0 && std::ranges::find(failed_, to_make) == failed_.end();
}

Task<Result<void>> DraftPlans::add(DraftNeed need, uint32_t slots, Record record, RecordText record_text) {
  if (!may_add(need, slots)) co_return Result<void>();
  need = need_to_make(need);
  const uint32_t made_rows = next_rows(need, slots);
  const auto start = Clock::now();
  const uint64_t objects_before = gpu::objects_made(device_->counters());
  auto building = build(need, made_rows, record, record_text);
  const Result<void> built = co_await std::move(building);
  if (!built) {
    failed_.push_back(need);
    co_return built;
  }
  objects_created_ += gpu::objects_made(device_->counters()) - objects_before;
  log(LogLevel::kInfo, "The plan of steps of %u rows that draft (%s) was made in %.2f s.", made_rows,
      drafter_name(need.drafter), std::chrono::duration<double>(Clock::now() - start).count());
  co_return Result<void>();
}

// Makes one plan: a decode step can be queued after each.
Task<Result<void>> DraftPlans::build(DraftNeed need, uint32_t next_rows, Record record,
                                     RecordText record_text) {
  DP_CO_CHECK(co_await make_text(*device_, *builder_));
  [[maybe_unused]] gpu::Buffer* made = nullptr;
  if (!views_.logits.valid()) {
    const uint64_t rows = shape_.most_rows;
    DP_CO_TRY(made,
              co_await buffer(*device_, *builder_, "draft_choices", rows * kDraftPlansWord, &views_.choices));
    DP_CO_TRY(made, co_await buffer(*device_, *builder_, "draft_logits",
                                    rows * shape_.vocab_size * kDraftPlansWord, &views_.logits));
  }
  DP_CO_CHECK(co_await make_rows(*builder_, need));
  gpu::PlanBuilder builder = *builder_;
  const bool makes_text_plan = !text_plan_ && places_ != 0;
  if (makes_text_plan) DP_CO_CHECK(record_text(builder));
  const PlanRow row{.name = name_of(need, next_rows),
                    .max_rows = next_rows,
                    .logits_rows = lowering::LogitsRows::kAll,
                    .greedy = need.greedy,
                    .drafter = need.drafter};
  DP_CO_CHECK(record(builder, row, need));
  auto building = builder.build(*device_, {});
  DP_CO_TRY(gpu::BuiltPlans built, co_await std::move(building));
  std::ranges::move(built.owned, std::back_inserter(owned_));
  auto next = built.plans.begin();
  if (makes_text_plan) text_plan_ = std::move(*next++);
  auto made_for = std::ranges::find(made_, need, &Made::need);
  if (made_for == made_.end()) {
    made_for = made_.insert(made_.end(), Made{.need = need, .rows = {}, .plans = {}});
    made_for->rows.reserve(std::size(kDraftKinds));  // callers hold spans
  }
  const auto at = std::ranges::lower_bound(made_for->rows, next_rows) - made_for->rows.begin();
  plans_.push_back(std::move(*next));
  made_for->plans.insert(made_for->plans.begin() + at, &plans_.back());
  made_for->rows.insert(made_for->rows.begin() + at, next_rows);
  co_return Result<void>();
}

// Makes the buffers that each row of a choice reads, unless the choice is greedy. ChoicePlans has made the buffers of
// the parts: it does so before a generation that asks for them begins.
Task<Result<void>> DraftPlans::make_rows(gpu::PlanBuilder& builder, DraftNeed need) {
  if (need.greedy) co_return Result<void>();
  const uint64_t rows = shape_.most_rows;
  [[maybe_unused]] gpu::Buffer* made = nullptr;
  if (!params_) {
    DP_CO_TRY(bias_, co_await buffer(*device_, builder, "draft_bias",
                                     rows * kernels::kMaxLogitBias * 2 * kDraftPlansWord, &views_.bias));
    DP_CO_TRY(made, co_await buffer(*device_, builder, "draft_counts",
                                    rows * shape_.vocab_size * kDraftPlansWord, &views_.counts));
    DP_CO_TRY(params_, co_await buffer(*device_, builder, "draft_params", rows * kernels::kSampleParamsStride,
                                       &views_.params));
  }
  if (need.parts.all_samplers && !breakers_) {
    DP_CO_TRY(made, co_await buffer(*device_, builder, "draft_sampler_states",
                                    rows * sizeof(kernels::MoreState), &views_.more));
    const uint64_t words = kernels::breaker_words(shape_.vocab_size);
    DP_CO_TRY(breakers_, co_await buffer(*device_, builder, "draft_dry_breakers",
                                         rows * words * kDraftPlansWord, &views_.breakers));
    views_.past.more = builder.external(*choices_->more());
  }
  if (need.parts.masks && !masks_) {
    const uint64_t words = kernels::mask_words(shape_.vocab_size);
    DP_CO_TRY(masks_, co_await buffer(*device_, builder, "draft_masks", rows * words * kDraftPlansWord,
                                      &views_.masks));
  }
  if (need.parts.logprobs) views_.past.logprobs = builder.external(*choices_->logprobs());
  co_return Result<void>();
}

Result<void> DraftPlans::write_settings(gpu::Device& device, const GenerationSettings& settings,
                                        const PastTokens& past, uint32_t first, uint32_t rows) const {
  kernels::SampleParams params = settings.sampling;
  params.greedy = settings.greedy ? 1 : 0;
  params.bias_count = static_cast<uint32_t>(settings.logit_bias.size());
  for (uint32_t row = first; row < first + rows; ++row) {
    DP_CHECK(device.write(*params_, row * kernels::kSampleParamsStride, bytes_of(params)));
    if (!settings.logit_bias.empty()) {
      const uint64_t at = row * uint64_t{kernels::kMaxLogitBias} * 2 * kDraftPlansWord;
      DP_CHECK(device.write(*bias_, at, bytes_of(settings.logit_bias)));
    }
    if (breakers_) {
      DP_CHECK(
          device.write(*breakers_, row * past.breakers.size() * kDraftPlansWord, bytes_of(past.breakers)));
    }
  }
  return {};
}

Result<void> DraftPlans::write_rows(gpu::Device& device, std::span<const uint32_t> tokens) const {
  return device.write(*text_, kernels::kTextRows * kDraftPlansWord, bytes_of(tokens));
}

Result<void> DraftPlans::write_given(gpu::Device& device, uint32_t drafts) const {
  return device.write(*text_, kernels::kTextGiven * kDraftPlansWord, bytes_of(drafts));
}

Result<void> DraftPlans::write_masks(gpu::Device& device, uint32_t first,
                                     std::span<const std::vector<uint32_t>> masks) const {
  const uint64_t row_bytes = uint64_t{kernels::mask_words(shape_.vocab_size)} * kDraftPlansWord;
  for (size_t i = 0; i < masks.size(); ++i) {
    constexpr uint32_t kNoMask = 0;
    const uint64_t at = (first + i) * row_bytes;
    if (masks[i].empty()) {
      DP_CHECK(device.write(*masks_, at, bytes_of(kNoMask)));
      continue;
    }
    DP_CHECK(device.write(*masks_, at, bytes_of(mask_row(masks[i], shape_.vocab_size))));
  }
  return {};
}

const gpu::Plan& DraftPlans::plan(const DraftNeed& need, uint32_t rows) const {
  const Made& made = *find(need);
  return *made.plans[static_cast<size_t>(std::ranges::find(made.rows, rows) - made.rows.begin())];
}

const gpu::Plan& DraftPlans::least_plan(const DraftNeed& need, uint32_t rows) const {
  const Made& made = *find(need);
  return *made.plans[static_cast<size_t>(std::ranges::lower_bound(made.rows, rows) - made.rows.begin())];
}

}  // namespace doppler::model
