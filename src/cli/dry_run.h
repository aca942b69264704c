// --dry-run of run and bench: what loading would put on the device, and whether it fits. Opens the device and reads the
// model's headers; loads nothing.
#pragma once

#include "cli/common.h"

namespace doppler::cli {

// Gives the verb's exit code: 1 if the model does not fit, or if that cannot be told.
int dry_run(const ModelFlags& flags, bool json);

}  // namespace doppler::cli
