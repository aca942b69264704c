// --dry-run of run and bench: what loading would put on the device, and whether it fits. Opens the device and reads the
// model's headers; loads nothing.
#pragma once

#include "cli/common.h"

namespace doppler::cli {

// Gives the verb's exit code: 1 if the model does not fit, or if that cannot be told.
int dry_run(const ModelFlags& flags, bool json);

// The words after the context's length if layers with a window keep fewer positions: ", 1024 of layers with a window";
// else "".
std::string ring_text(const model::MemoryEstimate& memory);

}  // namespace doppler::cli
