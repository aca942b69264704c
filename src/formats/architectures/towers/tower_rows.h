// The rows of vision towers. They are read as models of their own beside the text model's, so errors and tables that
// list architectures do not have them. A tower's page is in src/families/towers.
#pragma once

#include <span>
#include <string_view>

#include "formats/architectures/architecture.h"

namespace doppler::formats::towers {

extern const Architecture qwen2_5_vl, qwen3_vl, gemma3, clip, internvl, idefics3, lfm2_vl, pixtral, mistral3,
    glm4v, gemma4, paligemma;

std::span<const Architecture* const> rows();

}  // namespace doppler::formats::towers
