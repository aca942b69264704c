// A picture that prompts may have. Its tokens have numbers from kFirstImageToken on, one after another, which no other
// picture has, so that two texts are the same exactly if their numbers are: prefixes that differ in a picture differ.
// Read next: image_numbers.h (who gives the numbers), image_store.h (the pictures' rows on a device).
#pragma once

#include <cstdint>
#include <memory>

#include "images/prepared_image.h"

namespace doppler::model {

inline constexpr uint32_t kFirstImageToken = 0x80000000;
inline constexpr uint32_t kEndImageTokens = 0xF0000000;
inline bool is_image_token(uint32_t token) { return token >= kFirstImageToken && token < kEndImageTokens; }

// As long as somebody holds it, its rows can be made.
struct HeldImage {
  uint32_t first_token = 0;  // its tokens' numbers begin here
  images::PreparedImage prepared;
  uint32_t rows = 0, columns = 0;  // of tokens, of its first tile
  // Not empty: it is no picture but a prompt that sees itself (formats::PictureSight). These are its tokens, and those
  // of its pictures are numbers.
  std::vector<uint32_t> prompt = {};

  uint32_t tokens() const {
    return prompt.empty() ? prepared.tokens() : static_cast<uint32_t>(prompt.size());
  }
  bool has(uint32_t token) const { return token - first_token < tokens(); }
};

}  // namespace doppler::model
