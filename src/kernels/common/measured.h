// Rows of the tables of measured numbers: a folder of kernels has its table in its measured.h. A row has a number and
// the measurement that chose it. No other source names a device, or a number of workgroups that fills one;
// tools/check_layers refuses it. A number that is a Fill grows with the device. Numbers that tuning may change go on
// to tunable() (tuning.h).
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include "gpu/caps.h"

namespace doppler::kernels {

struct Measurement {
  std::string_view device;   // "H200", through Dawn
  std::string_view command;  // what was run
  std::string_view date;     // "2026-11-21"
  std::string_view result;   // what won against what
};

// A number that is the same on all devices.
template <class T = uint32_t>
struct Measured {
  T value;
  Measurement by;
  constexpr operator T() const { return value; }  // not explicit: expressions read as with a plain constant
};

// A number of workgroups that is about as many as a device runs at once: `each` for a compute unit.
struct Fill {
  uint32_t each;
  Measurement by;
  bool power_of_two = false;  // the largest below that

  uint32_t of(const gpu::Caps& caps) const {
    const uint32_t workgroups = each * caps.filling_units();
    return power_of_two ? std::bit_floor(workgroups) : workgroups;
  }
};

// A measurement that decided the place of a row in a table of variants.
struct Finding {
  std::string_view variant;
  Measurement by;
};

}  // namespace doppler::kernels
