// The flags that say how to generate: sampling, limits, stops.
#pragma once

#include "cli/args.h"
#include "doppler/doppler.h"

namespace doppler::cli {

struct GenerateFlags {
  GenerateOptions options;
};
void add_generate_flags(Args& args, GenerateFlags& flags);

}  // namespace doppler::cli
