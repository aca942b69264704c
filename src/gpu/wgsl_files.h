// Where the composer reads WGSL from: the embedded texts, or a folder on disk for an edit-run loop.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace doppler::gpu {

// The file's text from the folder DOPPLER_WGSL_DIR; empty when the variable is not set (always in a browser)
// or the file is not there.
std::optional<std::string> read_wgsl_from_disk(std::string_view name);

}  // namespace doppler::gpu
