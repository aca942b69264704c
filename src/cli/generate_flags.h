// The flags that say how to generate: sampling, limits, stops.
#pragma once

#include "cli/args.h"
#include "doppler/doppler.h"

namespace doppler::cli {

struct GenerateFlags {
  GenerateOptions options;
};
// Flags about the generation: sampling, the token limit, stops, the effect of a full context.
void add_sampling_flags(Args& args, GenerateOptions& options);
// The same, and how the device is driven for it.
void add_generate_flags(Args& args, GenerateFlags& flags);

}  // namespace doppler::cli
