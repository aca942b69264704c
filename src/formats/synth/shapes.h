// The shapes of models, for synthetic weights: the numbers of a config.json, published ones by name, any other by its
// path.
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
// A name of the list, or the path of a file that ends in .json. Errors: an unknown shape (the sentence suggests and
// lists the known ones), a file that cannot be read, an unknown model.
Result<NamedConfig> shape_of(const std::string& name_or_path);
std::vector<std::string> shape_name_list();

}  // namespace doppler::formats
