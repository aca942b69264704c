// The adapters in the arena, and the sequences that hold them. A generation names its adapters, and the set finds their
// slot. If they have none, it loads them into the least recently used slot that no sequence holds. Read next:
// adapter_arena.h.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "model/adapter_arena.h"
#include "model/generation.h"

namespace doppler::model {

class AdapterSet {
 public:
  // Makes the buffers, and returns what lowering needs. Slot 1 holds room.first after load_first().
  Task<Result<lowering::Adapters>> make(gpu::Device& device, gpu::PlanBuilder& builder,
                                        const graph::Graph& graph, const formats::Checkpoint& checkpoint,
                                        const formats::ModelConfig& config, const AdapterRoom& room,
                                        uint32_t sequences);
  Task<Result<void>> load_first();
  const AdapterArena& arena() const { return arena_; }
  // The adapters that the model was loaded with. Null: none.
  const std::shared_ptr<const AdapterMix>& first() const { return first_; }

  // Error: the arena has no room, or none for these adapters.
  Result<void> check(const std::shared_ptr<const AdapterMix>& mix) const;
  bool is_resident(const std::shared_ptr<const AdapterMix>& mix) const { return !mix || find(*mix); }
  // Says whether load() would find a slot that no sequence holds.
  bool has_free_slot() const { return free_slot().has_value(); }
  Task<Result<void>> load(std::shared_ptr<const AdapterMix> mix);
  // A sequence's rows have these adapters from now on. They must be resident. Null: no adapters.
  Result<void> begin(uint32_t sequence, const std::shared_ptr<const AdapterMix>& mix, uint32_t from);
  // The sequence no longer holds its adapters.
  void end(uint32_t sequence);

 private:
  struct Resident {
    std::vector<uint32_t> key;  // empty: nothing
    uint64_t used_at = 0;
    bool is_loading = false;
  };
  std::optional<uint32_t> find(const AdapterMix& mix) const;  // slot - 1
  std::optional<uint32_t> free_slot() const;

  AdapterArena arena_;
  std::shared_ptr<const AdapterMix> first_;
  std::vector<Resident> residents_;
  std::vector<uint32_t> held_;  // by sequence: a slot, 0 none
  uint64_t clock_ = 0;
};

}  // namespace doppler::model
