// Four devices as capability records, for recording plans without a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gpu/caps.h"

namespace doppler::plans {

struct Fixture {
  std::string_view name;
  gpu::Caps caps;
  uint32_t co_resident_groups =
      1;  // workgroups that are co-resident, as the lane persistent would count them
};

std::span<const Fixture> fixtures();

}  // namespace doppler::plans
