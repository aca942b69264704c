#include "base/stable_order.h"

#include <algorithm>
#include <numeric>

namespace doppler {

std::vector<uint32_t> stable_order(size_t count, const std::function<bool(uint32_t, uint32_t)>& is_before) {
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), std::cref(is_before));
  return order;
}

}  // namespace doppler
