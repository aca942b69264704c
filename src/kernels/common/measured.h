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

// Kernels whose invocations make few values each, in plans of more than kRowsThatFill rows: the most invocations of a
// workgroup. With fewer rows small workgroups spread one row over more of the device.
inline constexpr uint32_t kRowsThatFill = 64;
inline constexpr Measured<> kMostInvocationsOfMany = {
    .value = 256,
    .by = {.device = "H200",
           .command = "doppler profile --image 1024x1024",
           .date = "2026-11-29",
           .result =
               "with 64 and 256, us: rope_kv of 4,096 rows 75 and 57, three concats of 1,024 rows 376 and "
               "157; it began about one workgroup a clock"}};

}  // namespace doppler::kernels
