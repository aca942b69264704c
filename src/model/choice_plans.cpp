#include "model/choice_plans.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "gpu/objects_made.h"

namespace doppler::model {
namespace {

using Clock = std::chrono::steady_clock;

// "decode.sample" with log-probabilities and masks: "decode.sample.logprobs.masks".
std::string name_of(const std::string& base, SamplerParts parts) {
  return base + (parts.all_samplers ? ".samplers" : "") + (parts.logprobs ? ".logprobs" : "") +
         (parts.masks ? ".masks" : "");
}

const char* words_for(SamplerParts parts) {
  if (parts.all_samplers) return "a further sampler";
  return parts.logprobs ? "log-probabilities" : "a grammar";
}

}  // namespace

void ChoicePlans::begin(gpu::Device& device, gpu::PlanBuilder builder, ChoiceShape shape) {
  device_ = &device;
  builder_ = std::move(builder);
  shape_ = shape;
}

bool ChoicePlans::has(SamplerParts parts) const { return std::ranges::find(known_, parts) != known_.end(); }

Task<Result<gpu::Buffer*>> ChoicePlans::buffer(const char* name, uint64_t bytes, kernels::TensorView* view) {
  gpu::BufferDesc desc{.name = name, .bytes = (bytes + 255) / 256 * 256, .use = gpu::BufferUse::kStorage};
  DP_CO_TRY(gpu::Buffer made, co_await device_->create_buffer(std::move(desc)));
  buffers_.push_back(std::move(made));
  *view = builder_->external(buffers_.back());
  co_return &buffers_.back();
}

Task<Result<void>> ChoicePlans::make_buffers(SamplerParts parts) {
  const uint64_t sequences = shape_.sequences;
  if (parts.all_samplers && !more_) {
    DP_CO_TRY(more_, co_await buffer("sampler_state", sequences * sizeof(kernels::MoreState), &views_.more));
    DP_CO_TRY(breakers_,
              co_await buffer("dry_breakers", sequences * kernels::breaker_words(shape_.vocab_size) * 4,
                              &views_.breakers));
  }
  if (parts.logprobs && !logprobs_) {
    constexpr uint64_t kEntry = sizeof(kernels::LogProbEntry);
    DP_CO_TRY(logprob_readback_,
              co_await device_->create_readback_ring(shape_.tickets, shape_.ticket_entries * kEntry));
    DP_CO_TRY(logprobs_, co_await buffer("logprob_ring", shape_.ring_entries * kEntry, &views_.logprobs));
  }
  if (parts.masks && !mask_) {
    DP_CO_TRY(mask_, co_await buffer("token_masks", sequences * kernels::mask_words(shape_.vocab_size) * 4,
                                     &views_.mask));
  }
  co_return Result<void>();
}

ChoiceViews ChoicePlans::views_of(SamplerParts parts) const {
  ChoiceViews out;
  if (parts.all_samplers) out.more = views_.more;
  if (parts.all_samplers) out.breakers = views_.breakers;
  if (parts.logprobs) out.logprobs = views_.logprobs;
  if (parts.masks) out.mask = views_.mask;
  return out;
}

Task<Result<void>> ChoicePlans::add(SamplerParts parts, const std::vector<gpu::Plan>& plans, Record record) {
  if (has(parts)) co_return Result<void>();
  const auto start = Clock::now();
  const uint64_t objects_before = gpu::objects_made(device_->counters());
  DP_CO_CHECK(co_await make_buffers(parts));
  std::vector<SamplerParts> fresh;
  for (const SamplerParts& known : known_) {
    const SamplerParts both = known | parts;
    if (!has(both) && std::ranges::find(fresh, both) == fresh.end()) fresh.push_back(both);
  }
  gpu::PlanBuilder builder = *builder_;
  for (const SamplerParts& each : fresh) {
    for (const ChoiceSection& section : sections_) {
      DP_CO_CHECK(record(builder, section.row, name_of(section.row.name, each), views_of(each)));
    }
  }
  auto building = builder.build(*device_, {});
  DP_CO_TRY(gpu::BuiltPlans built, co_await std::move(building));
  for (size_t i = 0; i < built.plans.size(); ++i) {
    const ChoiceSection& section = sections_[i % sections_.size()];
    const auto base = std::ranges::find(plans, section.row.name, &gpu::Plan::name);
    plans_.emplace(built.plans[i].name, gpu::spliced(*base, section.first, section.end, built.plans[i]));
  }
  std::ranges::move(built.owned, std::back_inserter(owned_));
  known_.insert(known_.end(), fresh.begin(), fresh.end());
  objects_created_ += gpu::objects_made(device_->counters()) - objects_before;
  log(LogLevel::kInfo, "A generation asks for %s: %zu plans were made for that in %.2f s.", words_for(parts),
      built.plans.size(), std::chrono::duration<double>(Clock::now() - start).count());
  co_return Result<void>();
}

const gpu::Plan& ChoicePlans::of(const gpu::Plan& base, SamplerParts parts) const {
  if (!parts.any()) return base;
  const auto found = plans_.find(name_of(base.name, parts));
  return found == plans_.end() ? base : found->second;  // greedy plans and those that draft have no sections
}

}  // namespace doppler::model
