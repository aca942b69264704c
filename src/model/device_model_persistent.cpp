// DeviceModel and the lane persistent (kernels/persistent). It counts how many workgroups could be co-resident before
// the plans are recorded. The kernel itself confirms that or says how many do, and then they are recorded again. Every
// ticket brings the word that says whether a wait was in vain. If one of these checks fails, the chain is used from
// then on, and one message says so by name.
#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "kernels/persistent/layers.h"
#include "kernels/persistent/probe.h"
#include "model/device_model.h"
#include "model/fault_watch.h"

namespace doppler::model {
namespace {

constexpr const char* kVariant = "decode_layers.persistent";
constexpr uint64_t kWord = 4;

uint32_t first_word(std::span<const uint8_t> bytes) {
  uint32_t word = 0;
  std::memcpy(&word, bytes.data(), kWord);
  return word;
}

}  // namespace

Task<Result<void>> DeviceModel::make_exchange(gpu::PlanBuilder& builder) {
  const gpu::Caps& caps = device_.caps();
  if (!caps.subgroups || !caps.dp4a) co_return Result<void>();  // select() refuses it by name
  DP_CO_TRY(persistent_.groups, co_await kernels::count_co_resident(device_));
  kernels::PersistentLayers shape;
  shape.layers.resize(config_.n_layers);
  for (uint32_t i = 0; i < config_.n_layers; ++i) shape.layers[i].cache = cache_.views()[i];
  shape.groups = persistent_.groups;
  shape.n_heads = config_.n_heads;
  shape.hidden_dim = config_.hidden_dim;
  shape.ffn_dim = config_.ffn_dim;
  DP_CO_TRY(exchange_, co_await buffer(builder, "exchange", kernels::exchange_bytes(shape, caps),
                                       &persistent_.exchange));
  memory_.scratch_bytes += exchange_->bytes();
  co_return Result<void>();
}

// The chain, in the plans' choices too.
void DeviceModel::refuse_persistent(const std::string& reason) {
  log(LogLevel::kWarning, "%s is not used: %s. Decoding goes by the chain of dispatches.", kVariant,
      reason.c_str());
  persistent_refused_ = true;
  for (kernels::Choice& choice : choices_) {
    if (choice.variant != kVariant) continue;
    choice.variant = "decode_layers.chain";
    choice.refused.push_back({.variant = kVariant, .reason = reason});
  }
}

// Runs a decode plan with the kernel only counting its workgroups; 0 if the plan does not have it. The first prefill
// writes again what the plan's other dispatches write.
Task<Result<uint32_t>> DeviceModel::count_persistent(const gpu::Plan& counted) {
  const auto set_mode = [&](uint32_t mode) {  // and forget what was counted before
    uint32_t words[kernels::kExchangeCountingWords] = {};
    words[kernels::kExchangeMode] = mode;
    return device_.write(*exchange_, 0, {reinterpret_cast<const uint8_t*>(words), sizeof(words)});
  };
  DP_CO_CHECK(set_mode(kernels::kExchangeModeProbe));
  const gpu::Work work{.plan = &counted, .rows = 1, .times = 1};
  DP_CO_CHECK(device_.submit({&work, 1}));
  DP_CO_TRY(const std::vector<uint8_t> bytes,
            co_await device_.read_buffer({exchange_->id(), kernels::kExchangeCoResident * kWord, kWord}));
  DP_CO_CHECK(set_mode(0));
  co_return first_word(bytes);
}

// The least count over the plans that have the kernel.
Task<Result<uint32_t>> DeviceModel::count_persistent() {
  uint32_t least = persistent_.groups;
  for (const char* name : {"decode.short.greedy", "decode.long.greedy"}) {
    const auto found = std::ranges::find(built_.plans, name, &gpu::Plan::name);
    if (found == built_.plans.end()) continue;
    DP_CO_TRY(const uint32_t co_resident, co_await count_persistent(*found));
    if (co_resident != 0) least = std::min(least, co_resident);
  }
  co_return least;
}

// Plans are recorded again where fewer workgroups of the kernel are co-resident than were probed.
Task<Result<void>> DeviceModel::confirm_persistent() {
  if (std::ranges::find(choices_, kVariant, &kernels::Choice::variant) == choices_.end()) {
    const auto refused =
        std::ranges::find(choices_, std::string("decode_layers"), &kernels::Choice::operation);
    const bool is_known = refused != choices_.end() && !refused->refused.empty();
    refuse_persistent(is_known ? refused->refused.front().reason
                               : "this family or device has no such kernel");
    co_return Result<void>();
  }
  DP_CO_TRY(faults_, co_await device_.create_readback_ring(options_.tickets, kWord));
  DP_CO_TRY(uint32_t co_resident, co_await count_persistent());
  if (co_resident < persistent_.groups) {
    persistent_.groups = std::max(1u, co_resident);
    choices_.clear();
    reports_.clear();
    choice_plans_.forget_sections();
    gpu::PlanBuilder again = choice_plans_.builder();
    DP_CO_CHECK(record_plans(again));
    auto building = again.build(device_, {});
    DP_CO_TRY(gpu::BuiltPlans built, co_await std::move(building));
    built_ = std::move(built);  // not before: the pipelines of both that are equal are made once
    DP_CO_TRY(co_resident, co_await count_persistent());
  }
  if (co_resident < persistent_.groups) {
    refuse_persistent(
        format_text("of its %u workgroups %u are co-resident", persistent_.groups, co_resident));
    co_return Result<void>();
  }
  log(LogLevel::kInfo, "%s: %u workgroups are co-resident.", kVariant, co_resident);
  co_return Result<void>();
}

std::unique_ptr<TicketWatch> DeviceModel::make_watch() {
  if (!uses_persistent()) return nullptr;
  return std::make_unique<FaultWatch>(device_, *exchange_, std::move(faults_), [this] {
    if (persistent_refused_) return false;
    refuse_persistent("its workgroups are no longer co-resident");
    return true;
  });
}

Result<void> FaultWatch::note(uint32_t slot) {
  if (is_over_) return {};
  const gpu::ReadbackRequest request{
      .ring = &faults_,
      .slot = slot,
      .from = {.buffer = exchange_.id(), .offset = kernels::kExchangeFault * kWord, .bytes = kWord}};
  DP_CHECK(device_.submit({}, &request));
  asked_ |= uint64_t{1} << slot;
  return {};
}

Task<Result<void>> FaultWatch::check(uint32_t slot) {
  const uint64_t bit = uint64_t{1} << slot;
  if (!(asked_ & bit)) co_return Result<void>();
  asked_ &= ~bit;
  DP_CO_TRY(const std::vector<uint8_t> bytes, co_await device_.read(faults_, slot, kWord));
  if (first_word(bytes) == 0) co_return Result<void>();
  is_over_ = true;
  if (refuse_()) tokens_lost_ = true;
  co_return fail(
      ErrorKind::kInternal,
      "The workgroups of %s are no longer co-resident, so these tokens are lost; what follows goes by the "
      "chain of dispatches.",
      kVariant);
}

}  // namespace doppler::model
