// FileSet over the file system: a folder, or one file whose neighbours can be opened too. Files are mapped.
// Not part of the WebAssembly build.
#pragma once

#include <memory>
#include <string>

#include "formats/source.h"

namespace doppler::formats {

// Errors: nothing at that path, no permission, neither file nor folder.
Result<std::unique_ptr<FileSet>> open_file_set(const std::string& path);

}  // namespace doppler::formats
