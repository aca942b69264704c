// The shapes of published models, for synthetic weights: the numbers of each model's config.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/architectures/config.h"

namespace doppler::formats {

// Error: there is no such shape; the sentence suggests and lists those that are.
Result<ModelConfig> config_of_shape(std::string_view name);
std::vector<std::string> shape_name_list();

}  // namespace doppler::formats
