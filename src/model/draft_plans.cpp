#include "model/draft_plans.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"

namespace doppler::model {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kWord = sizeof(uint32_t);
constexpr uint32_t kNextRows = 2;  // of a step with a next-token layer

uint64_t objects_of(const gpu::Device& device) {
  const gpu::Counters& made = device.counters();
  return made.buffers_created + made.bind_groups_created + made.pipelines_created;
}

std::string name_of(const DraftNeed& need, uint32_t rows) {
  return format_text("draft.%s.%u.%s", drafter_name(need.drafter), rows, need.greedy ? "greedy" : "sample");
}

}  // namespace

const char* drafter_name(Drafter drafter) {
  switch (drafter) {
    case Drafter::kLookup:
      return "lookup";
    case Drafter::kNextLayer:
      return "next";
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
  places_ = 2 * shape_.ctx_len + 1;  // a prediction as long as the context, and a word between
  DP_CO_TRY(text_, co_await buffer(device, builder, "draft_text", kernels::text_words(places_) * kWord,
                                   &views_.text));
  views_.text.bytes = kernels::text_words(places_) * kWord;
  co_return Result<void>();
}

Task<Result<void>> DraftPlans::make_buffers(gpu::Device& device, gpu::PlanBuilder& builder,
                                            DraftShape shape) {
  shape_ = shape;
  DP_CO_CHECK(co_await make_text(device, builder));
  [[maybe_unused]] gpu::Buffer* made = nullptr;
  DP_CO_TRY(made, co_await buffer(device, builder, "next_drafts", kNextRows * kWord, &views_.next));
  co_return Result<void>();
}

void DraftPlans::begin(gpu::Device& device, gpu::PlanBuilder builder, DraftShape shape) {
  device_ = &device;
  builder_ = std::move(builder);
  shape_ = shape;
}

std::vector<uint32_t> DraftPlans::rows_of(Drafter drafter) const {
  std::vector<uint32_t> out;
  for (const DraftKind& kind : kDraftKinds) {
    if (kind.drafter == drafter && kind.rows <= shape_.most_rows) out.push_back(kind.rows);
  }
  return out;
}

const DraftPlans::Made* DraftPlans::find(const DraftNeed& need) const {
  const auto found = std::ranges::find(made_, need, &Made::need);
  return found == made_.end() ? nullptr : &*found;
}

std::span<const uint32_t> DraftPlans::rows(const DraftNeed& need) const {
  const Made* const made = find(need);
  return made ? std::span<const uint32_t>(made->rows) : std::span<const uint32_t>();
}

bool DraftPlans::may_add(const DraftNeed& need) const {
  return device_ && !find(need) && !rows_of(need.drafter).empty() &&
         std::ranges::find(failed_, need) == failed_.end();
}

Task<Result<void>> DraftPlans::add(DraftNeed need, Record record, RecordText record_text) {
  if (find(need)) co_return Result<void>();
  const auto start = Clock::now();
  const uint64_t objects_before = objects_of(*device_);
  auto building = build(need, record, record_text);
  const Result<void> built = co_await std::move(building);
  if (!built) {
    failed_.push_back(need);
    co_return built;
  }
  objects_created_ += objects_of(*device_) - objects_before;
  log(LogLevel::kInfo, "Steps that draft (%s) were made in %.2f s: %zu plans of up to %u rows.",
      drafter_name(need.drafter), std::chrono::duration<double>(Clock::now() - start).count(),
      made_.back().plans.size(), made_.back().rows.back());
  co_return Result<void>();
}

Task<Result<void>> DraftPlans::build(DraftNeed need, Record record, RecordText record_text) {
  DP_CO_CHECK(co_await make_text(*device_, *builder_));
  [[maybe_unused]] gpu::Buffer* made = nullptr;
  if (!views_.logits.valid()) {
    const uint64_t rows = shape_.most_rows;
    DP_CO_TRY(made, co_await buffer(*device_, *builder_, "draft_choices", rows * kWord, &views_.choices));
    DP_CO_TRY(made, co_await buffer(*device_, *builder_, "draft_logits", rows * shape_.vocab_size * kWord,
                                    &views_.logits));
  }
  gpu::PlanBuilder builder = *builder_;
  Made out{.need = need, .rows = rows_of(need.drafter), .plans = {}};
  if (!text_plan_) DP_CO_CHECK(record_text(builder));
  for (const uint32_t rows : out.rows) {
    const PlanRow row{.name = name_of(need, rows),
                      .max_rows = rows,
                      .logits_rows = lowering::LogitsRows::kAll,
                      .greedy = need.greedy,
                      .drafter = need.drafter};
    DP_CO_CHECK(record(builder, row));
  }
  auto building = builder.build(*device_, {});
  DP_CO_TRY(gpu::BuiltPlans built, co_await std::move(building));
  std::ranges::move(built.owned, std::back_inserter(owned_));
  auto next = built.plans.begin();
  if (!text_plan_) text_plan_ = std::move(*next++);
  out.plans.assign(std::make_move_iterator(next), std::make_move_iterator(built.plans.end()));
  made_.push_back(std::move(out));
  co_return Result<void>();
}

const gpu::Plan& DraftPlans::plan(const DraftNeed& need, uint32_t rows) const {
  const Made& made = *find(need);
  return made.plans[static_cast<size_t>(std::ranges::find(made.rows, rows) - made.rows.begin())];
}

}  // namespace doppler::model
