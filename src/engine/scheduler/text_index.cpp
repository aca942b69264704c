#include "engine/scheduler/text_index.h"

#include <utility>

#include "kernels/step/lookup.h"

namespace doppler::engine {
namespace {

static_assert(kernels::kLeastMatch == 3);
constexpr uint64_t kFactor = 0x9E3779B97F4A7C15;  // of the golden ratio: spreads neighbouring ids

}  // namespace

Guesses TextIndex::add(std::span<const uint32_t> tokens) {
  Guesses out;
  for (const uint32_t token : tokens) {
    const bool is_right = guess_ != 0 && text_[guess_] == token;
    if (guess_ != 0) ++(is_right ? out.right : out.wrong);
    text_.push_back(token);
    const size_t size = text_.size();
    guess_ = is_right ? guess_ + 1 : 0;
    if (size < kernels::kLeastMatch) continue;
    const uint64_t two = text_[size - 3] * kFactor + text_[size - 2];
    const uint64_t run = (two * kFactor + token) * kFactor;
    size_t& seen = seen_[run];
    before_ = std::exchange(seen, size);
    if (guess_ == 0) guess_ = before_;
  }
  return out;
}

std::vector<uint32_t> TextIndex::drafts(size_t most) const {
  std::vector<uint32_t> out;
  for (size_t i = 0; before_ != 0 && i < most; ++i) {
    const size_t at = before_ + i;
    out.push_back(at < text_.size() ? text_[at]
                                    : out[at - text_.size()]);  // a text of one repeated run goes on
  }
  return out;
}

}  // namespace doppler::engine
