// The device's own ceilings, which shares and floors in bench and profile are taken of: measured, never
// looked up, so that they hold for the clocks, the driver and the provider of this very run. Read next:
// ceiling_parts.h (what each kernel does).
#pragma once

#include "base/result.h"
#include "base/task.h"
#include "gpu/device.h"

namespace doppler::kernels {

struct Ceilings {
  double read_bytes_per_second = 0;
  double f32_operations_per_second = 0;   // a fused multiply-add is two
  double dp4a_operations_per_second = 0;  // a dot4I8Packed with its addition is eight; 0: the device lacks it
  double matrix_operations_per_second =
      0;                       // f16 products, f32 sums, a multiply-add is two; 0: no matrix units
  double dispatch_ns = 0;      // one dispatch that depends on the one before
  bool by_timestamps = false;  // false: by the host's clock, which adds what a submit costs
};

// Warms the device up first, until its clocks are steady. Takes one to three seconds and meanwhile a buffer of up to 1
// GiB (128 MiB on a CPU), less if memory is short. Each figure is the best of repetitions that take at least 20 ms
// together. Wait for other work before calling it.
Task<Result<Ceilings>> measure_ceilings(gpu::Device& device);

}  // namespace doppler::kernels
