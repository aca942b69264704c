// Largest first, each into the buffer of the best fitting size that is free during its life; see
// scratch_placement.h.
#include "gpu/scratch_placement.h"

#include <algorithm>

#include "base/stable_order.h"

namespace doppler::gpu {
namespace {

bool meet(const std::vector<Lifetime>& a, const std::vector<Lifetime>& b) {
  for (const Lifetime& x : a) {
    for (const Lifetime& y : b) {
      if (x.plan == y.plan && x.first <= y.last && y.first <= x.last) return true;
    }
  }
  return false;
}

}  // namespace

ScratchPlacement place_scratch(const std::vector<ScratchTensor>& tensors) {
  ScratchPlacement placement;
  placement.physical.assign(tensors.size(), UINT32_MAX);
  const std::vector<uint32_t> order = stable_order(
      tensors.size(), [&](uint32_t a, uint32_t b) { return tensors[a].bytes > tensors[b].bytes; });

  std::vector<std::vector<Lifetime>> taken;  // of each buffer
  for (const size_t index : order) {
    const ScratchTensor& tensor = tensors[index];
    if (tensor.lives.empty()) continue;
    // Buffers are in order of falling size and all large enough: the last free one fits best.
    size_t chosen = taken.size();
    for (size_t i = taken.size(); i-- > 0 && chosen == taken.size();) {
      if (!meet(taken[i], tensor.lives)) chosen = i;
    }
    if (chosen == taken.size()) {
      taken.emplace_back();
      placement.sizes.push_back(tensor.bytes);
    }
    taken[chosen].insert(taken[chosen].end(), tensor.lives.begin(), tensor.lives.end());
    placement.physical[index] = static_cast<uint32_t>(chosen);
  }
  return placement;
}

}  // namespace doppler::gpu
