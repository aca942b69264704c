// One sort for all callers that can work with positions: std::sort is compiled anew for each type, some kilobytes each
// in WebAssembly.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace doppler {

// The positions 0 to count - 1 in the order that `is_before` says; equal ones keep their order.
std::vector<uint32_t> stable_order(size_t count, const std::function<bool(uint32_t, uint32_t)>& is_before);

}  // namespace doppler
