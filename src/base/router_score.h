// The ways in which a mixture of experts scores its experts, by the names that papers and config files use. The numbers
// of a model, its graph and the kernel that chooses (kernels/moe) share them.
#pragma once

#include <cstdint>

namespace doppler {

// kSoftmaxOfChosen: the best logits are chosen, then softmax runs over only those. The values are those of route.wgsl.
enum class RouterScore : uint8_t { kSoftmax, kSigmoid, kSoftmaxOfChosen };

constexpr const char* router_score_name(RouterScore score) {
  constexpr const char* kNames[] = {"softmax", "sigmoid", "softmax_of_chosen"};
  return kNames[static_cast<uint8_t>(score)];
}

// The score that a group of experts is chosen by: its best choice, or the sum of its two best.
enum class GroupScore : uint8_t { kMax, kSumOfTwo };

}  // namespace doppler
