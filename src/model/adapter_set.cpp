#include "model/adapter_set.h"

#include <algorithm>

namespace doppler::model {

Task<Result<lowering::Adapters>> AdapterSet::make(gpu::Device& device, gpu::PlanBuilder& builder,
                                                  const graph::Graph& graph,
                                                  const formats::Checkpoint& checkpoint,
                                                  const formats::ModelConfig& config, const AdapterRoom& room,
                                                  uint32_t sequences) {
  residents_.resize(room.slots);
  held_.resize(std::max(1u, sequences));
  if (!room.first.empty()) first_ = std::make_shared<AdapterMix>(AdapterMix{.parts = room.first});
  return arena_.make(device, builder, graph, checkpoint, config, room, sequences);
}

Task<Result<void>> AdapterSet::load_first() {
  if (!first_) co_return Result<void>();
  auto loading = load(first_);
  co_return co_await std::move(loading);
}

Result<void> AdapterSet::check(const std::shared_ptr<const AdapterMix>& mix) const {
  if (!mix) return arena_.check({});
  if (!arena_.is_there()) {
    return fail(ErrorKind::kUnsupported,
                "The model was loaded without room for adapters; load it with --lora or --lora-slots "
                "(in JavaScript: adapters or adapterSlots).");
  }
  return arena_.check(mix->parts);
}

std::optional<uint32_t> AdapterSet::find(const AdapterMix& mix) const {
  const std::vector<uint32_t> key = mix.key();
  for (uint32_t i = 0; i < residents_.size(); ++i) {
    if (residents_[i].key == key && !residents_[i].is_loading) return i;
  }
  return std::nullopt;
}

std::optional<uint32_t> AdapterSet::free_slot() const {
  std::optional<uint32_t> oldest;
  for (uint32_t i = 0; i < residents_.size(); ++i) {
    const bool is_held = std::ranges::find(held_, i + 1) != held_.end() || residents_[i].is_loading;
    if (!is_held && (!oldest || residents_[i].used_at < residents_[*oldest].used_at)) oldest = i;
  }
  return oldest;
}

Task<Result<void>> AdapterSet::load(std::shared_ptr<const AdapterMix> mix) {
  DP_CO_CHECK(check(mix));
  if (is_resident(mix)) co_return Result<void>();
  const std::optional<uint32_t> slot = free_slot();
  if (!slot)
    co_return fail(ErrorKind::kOutOfMemory, "All %zu slots for adapters are in use.", residents_.size());
  Resident& resident = residents_[*slot];
  resident = {.key = mix->key(), .used_at = ++clock_, .is_loading = true};
  auto loading = arena_.load(*slot + 1, mix->parts);
  const Result<void> loaded = co_await std::move(loading);
  resident.is_loading = false;
  if (!loaded) resident.key.clear();
  co_return loaded;
}

Result<void> AdapterSet::begin(uint32_t sequence, const std::shared_ptr<const AdapterMix>& mix,
                               uint32_t from) {
  if (!arena_.is_there() && !mix) return {};
  const std::optional<uint32_t> slot = mix ? find(*mix) : std::nullopt;
  if (mix && !slot) return fail(ErrorKind::kInternal, "A generation begins before its adapters are there.");
  held_[sequence] = slot ? *slot + 1 : 0;
  if (slot) residents_[*slot].used_at = ++clock_;
  return arena_.use(sequence, held_[sequence], from);
}

void AdapterSet::end(uint32_t sequence) {
  if (sequence < held_.size()) held_[sequence] = 0;
}

}  // namespace doppler::model
