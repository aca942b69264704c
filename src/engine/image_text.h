// A picture's text in a prompt, by the model's type. The chat template writes a mark, and a text takes its place that
// has the picture's token once for each of its tokens.
#pragma once

#include <string>
#include <string_view>

#include "images/prepared_image.h"

namespace doppler::engine {

// Texts of tokens that config.json names; empty if it names none.
struct ImageWords {
  std::string token, begin, end, bos;
};

struct ImageText {
  std::string_view model_type;  // of config.json; of LLaVA with Pixtral's tower "pixtral"
  const std::string& (*mark)(const ImageWords& words);
  std::string (*write)(const ImageWords& words, const images::ImageRules& rules,
                       const images::ImageShape& image);
  const char* token;  // the published models' words, for files that name none (GGUF)
  const char* begin = "";
  const char* end = "";
  // Optional: what the processor makes of a whole text whose marks are replaced.
  std::string (*finish)(const ImageWords& words, std::string text) = nullptr;
  std::string_view chat_template = {};  // of models whose files have none
};

// Null: prompts of the type are not known.
const ImageText* find_image_text(std::string_view model_type);

}  // namespace doppler::engine
