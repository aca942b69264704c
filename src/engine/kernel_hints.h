// Kernel hints of an RDRR model. A hint names the variant that was measured fastest for an operation, with the device
// and the WGSL it was measured with. Loading applies hints as if a flag had forced them, but no hint makes a load fail:
// one that no longer holds is reported, and the tables choose.
#pragma once

#include <span>
#include <string>

#include "base/task.h"
#include "formats/rdrr/manifest.h"
#include "gpu/caps.h"
#include "kernels/context.h"

namespace doppler::engine {

// Adds hints to `policy`. A hint for one shape goes to policy.tuning, unless this device was tuned for it or the hint's
// own times say that the tables' choice is as fast. A hint for a whole operation goes to policy.forced. Only hints
// count that were measured on this device with the WGSL of this build, unless the user forced something else. Warnings,
// one line each: the digest is another, the variant is unknown or cannot be used here, the measured times speak against
// it, and (applied all the same) the tables rank another above a variant without times.
Task<Result<void>> apply_kernel_hints(std::span<const formats::RdrrKernelHint> hints, const gpu::Caps& caps,
                                      kernels::Policy& policy);

// A hint for what was measured now. Errors: no such variant; a host that cannot hash.
Task<Result<formats::RdrrKernelHint>> make_kernel_hint(std::string operation, std::string variant,
                                                       const gpu::Caps& caps);

}  // namespace doppler::engine
