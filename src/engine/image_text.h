// What stands in a prompt for a picture, by the model's type: the mark that its chat template writes, and the text that takes
// its place, in which the picture's token comes as often as the picture has tokens.
#pragma once

#include <string>
#include <string_view>

#include "images/prepared_image.h"

namespace doppler::engine {

// Texts of tokens that config.json names; empty where it names none.
struct ImageWords {
  std::string token, begin, end;
};

struct ImageText {
  std::string_view model_type;  // of config.json; of LLaVA with Pixtral's tower "pixtral"
  const std::string& (*mark)(const ImageWords& words);
  std::string (*write)(const ImageWords& words, const images::ImageRules& rules, const images::ImageShape& image);
};

// Null: prompts of the type are not known.
const ImageText* find_image_text(std::string_view model_type);

}  // namespace doppler::engine
