// --lora, --lora-slots and --lora-rank: the adapters that a verb loads a model with.
#pragma once

#include <string>
#include <vector>

#include "cli/args.h"
#include "doppler/doppler.h"

namespace doppler::cli {

void add_adapter_flags(Args& args, LoadOptions& load);
// Reads "[NAME=]FILE[:SCALE]". Errors: it names no file; the scale is no number.
Result<AdapterFile> parse_adapter(std::string_view text);

// Says whether the first of a verb's words is an adapter's file or folder.
Result<bool> names_adapter(const std::vector<std::string>& words);

}  // namespace doppler::cli
