// Kernel hints of an RDRR model: the variant that was fastest for an operation when somebody measured it, on which
// device and with which WGSL. Applied when a model is loaded, as if they had been forced by flag, but never so
// that a load fails: a hint that no longer holds is reported and the tables choose.
#pragma once

#include <span>
#include <string>

#include "base/task.h"
#include "formats/rdrr/manifest.h"
#include "gpu/caps.h"
#include "kernels/context.h"

namespace doppler::engine {

// Adds those hints to policy.forced that were measured on this device with the WGSL of this build, unless the user
// forced something else. Warnings, one line each: the digest is another, the variant is unknown or cannot be used
// here, and (applied all the same) the tables rank another variant above it.
Task<Result<void>> apply_kernel_hints(std::span<const formats::RdrrKernelHint> hints, const gpu::Caps& caps,
                                      kernels::Policy& policy);

// A hint for what was measured now. Errors: no such variant; a host that cannot hash.
Task<Result<formats::RdrrKernelHint>> make_kernel_hint(std::string operation, std::string variant,
                                                       const gpu::Caps& caps);

}  // namespace doppler::engine
