// The key inside the text of a tuning file, for what is made of the file on another machine. Read next: tuning.h.
#pragma once

#include "kernels/tuning.h"

namespace doppler::kernels {

// The key that the file says it was measured with. Errors: as parse_tuning().
Result<TuningKey> tuning_key_of(std::string_view text, std::string_view file);

}  // namespace doppler::kernels
