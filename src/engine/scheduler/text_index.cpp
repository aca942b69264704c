#include "engine/scheduler/text_index.h"

#include "kernels/step/lookup.h"

namespace doppler::engine {
namespace {

static_assert(kernels::kLeastMatch == 3);
constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;  // of the golden ratio: spreads neighbouring ids

}  // namespace

void TextIndex::add(std::span<const uint32_t> tokens) {
  for (const uint32_t token : tokens) {
    const uint64_t run = ((last_[1] * kFactor + last_[0]) * kFactor + token) * kFactor;
    if (++size_ >= kernels::kLeastMatch) repeats_ = !seen_.insert(run).second;
    last_[1] = last_[0];
    last_[0] = token;
  }
}

}  // namespace doppler::engine
