// The choice between the whole model on each of several devices and some of its layers (LoadOptions::split_mode).
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "doppler/doppler.h"
#include "model/split_plan.h"

namespace doppler::engine {

// Errors: LoadOptions::split_mode has another word than auto, layer or none; layer with one device.
Result<void> check_split_mode(std::string_view word, size_t devices);
// The layers of each of several devices. Empty: each has the whole model. Errors: the layers are to be dealt, and that
// cannot be done, or a device has no room for its share.
Result<std::optional<model::SplitPlan>> plan_devices(const formats::Checkpoint& checkpoint,
                                                     const LoadOptions& options,
                                                     std::span<const gpu::Caps* const> devices);

}  // namespace doppler::engine
