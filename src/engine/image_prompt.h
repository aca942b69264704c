// Pictures in prompts: a model's picture files prepared, and their tokens in a text. A chat template writes a mark
// where a picture belongs; the family says which marks become how many tokens.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "engine/image_text.h"
#include "images/prepared_image.h"
#include "model/image_numbers.h"
#include "tokenizer/tokenizer.h"

namespace doppler::engine {

using HeldImages = std::vector<std::shared_ptr<const model::HeldImage>>;

// The names of pictures in a model's texts. Any thread may read it.
struct ImageMarks {
  images::ImageRules rules;
  const ImageText* text =
      nullptr;         // null: prompts of the type are not known; ids that are expanded can be used
  ImageWords words;    // likewise
  uint32_t token = 0;  // of a picture, in expanded texts
  // The most tokens of a prompt with pictures, if such a prompt sees itself, in one step. 0: it does not.
  uint32_t most_prompt = 0;
};
// Errors: the config does not say which token stands for pictures.
Result<ImageMarks> image_marks(const Json& config, const images::ImageRules& rules, uint32_t vocab_size,
                               const tokenizer::Tokenizer* tokenizer);

// A request's word for detail asks for pan and scan. It is a hint, so models without pan and scan do not follow it.
std::optional<bool> pan_and_scan_of(const ImageMarks& marks, std::optional<bool> in_detail);

// The text with each picture's mark in the place of as many of the picture's tokens as it has, and what surrounds them.
// Errors: another number of marks than of pictures.
Result<std::string> expand_images(const ImageMarks& marks, std::string_view text,
                                  std::span<const images::ImageShape> images);

// Tokens of a text whose picture tokens are there in full: each becomes the number of its picture's token, in order.
// If such prompts see themselves, all tokens become numbers, and `images` gets one more that holds the prompt.
// Errors: the pictures have another number of tokens; a prompt that is too long for a step.
Result<std::vector<uint32_t>> place_images(const ImageMarks& marks, std::span<const uint32_t> tokens,
                                           HeldImages& images, model::ImageNumbers& numbers);

}  // namespace doppler::engine
