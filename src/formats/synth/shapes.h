// The shapes of models, for synthetic weights: the numbers of a config.json, published ones by name, any other by its path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/architectures/config.h"

namespace doppler::formats {

struct NamedConfig {
  std::string name;  // of a path: of the folder that the file lies in
  ModelConfig config;
};
// A name of the list, or the path of a file that ends in .json. Errors: there is no such shape (the sentence suggests and lists
// those that are); the file cannot be read; the model is not known.
Result<NamedConfig> shape_of(const std::string& name_or_path);
std::vector<std::string> shape_name_list();

}  // namespace doppler::formats
