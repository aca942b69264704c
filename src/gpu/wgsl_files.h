// Where the composer reads WGSL from: the embedded texts, or a folder on disk for an edit-run loop.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace doppler::gpu {

// The file's text from the folder DOPPLER_WGSL_DIR, its blocks written out (wgsl_repeat.h); empty when the variable is
// not set (always in a browser) or the file is not there. Error: a block that cannot be written out.
Result<std::optional<std::string>> read_wgsl_from_disk(std::string_view name);

}  // namespace doppler::gpu
