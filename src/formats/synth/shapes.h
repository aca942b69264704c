// The shapes of published models, for synthetic weights: dimensions only, from each model's config.json.
#pragma once

#include <string>
#include <string_view>

#include "formats/gguf/llama_metadata.h"

namespace doppler::formats {

struct NamedShape {
  const char* name;
  LlamaShape shape;
};

const NamedShape* find_shape(std::string_view name);  // null: unknown
std::string shape_names();                            // "llama-tiny, llama-3.2-1b, ..." for messages
std::vector<std::string> shape_name_list();

}  // namespace doppler::formats
