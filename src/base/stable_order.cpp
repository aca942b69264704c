#include "base/stable_order.h"

#include <algorithm>
#include <numeric>

namespace doppler {

std::vector<uint32_t> stable_order(size_t count, const std::function<bool(uint32_t, uint32_t)>& is_before) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  // Not std::stable_sort: of GCC 12's library Clang warns that its buffer is deprecated.
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return is_before(a, b) || (a < b && !is_before(b, a)); });
  return order;
}

}  // namespace doppler
