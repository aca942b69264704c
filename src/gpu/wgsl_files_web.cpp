// A browser has no disk; see wgsl_files.h.
#include "gpu/wgsl_files.h"

namespace doppler::gpu {

Result<std::optional<std::string>> read_wgsl_from_disk(std::string_view) { return std::nullopt; }

}  // namespace doppler::gpu
