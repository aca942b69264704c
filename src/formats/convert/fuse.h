// `--fuse-qkv` and `--fuse-gate-up`: the matrices that read the same vector become one, their rows one after the other,
// so that one kernel makes all results. RDRR only.
#pragma once

#include "formats/convert/conversion.h"
#include "formats/convert/options.h"

namespace doppler::formats {

// Replaces the tensors by fused ones, in their place, and numbers the tensors anew. To be called in the source's order,
// before types are chosen. Error: no layer has the requested tensors.
Result<> fuse(Conversion& conversion, const ConvertOptions& options);

}  // namespace doppler::formats
