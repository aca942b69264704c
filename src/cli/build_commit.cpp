#include "cli/build_commit.h"

#include "cli/build_commit.inc"  // cmake/BuildCommit.cmake writes it

namespace doppler::cli {

const char* build_commit() { return DOPPLER_COMMIT; }

}  // namespace doppler::cli
