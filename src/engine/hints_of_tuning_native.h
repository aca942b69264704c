// Kernel hints made of a tuning file, for `doppler convert --hints`. Read next: kernel_hints.h (how loading uses them),
// kernels/tuning.h (the file).
#pragma once

#include <string>
#include <vector>

#include "formats/rdrr/manifest.h"

namespace doppler::engine {

// A hint for each choice of the file that was measured faster than the tables'. Choices for a model and not a shape
// (cadence, persistent lane) stay in the file. Errors: no tuning file, one that was measured with other WGSL than this
// build's, and one without such a choice.
Result<std::vector<formats::RdrrKernelHint>> hints_of_tuning(std::string_view text, std::string_view file);

}  // namespace doppler::engine
