// --dry-run of run and bench: what loading would put on the device, and whether it fits. Opens the device and reads the
// model's headers; loads nothing.
#pragma once

#include "cli/common.h"

namespace doppler::cli {

// The verb's exit code: 1 if it does not fit or cannot be told.
int dry_run(const ModelFlags& flags, bool json);

}  // namespace doppler::cli
