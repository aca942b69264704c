// Gives the tokens of a model's pictures their numbers, the same for all devices that have the model. The same picture,
// prepared alike, has the same numbers again. Calls must not overlap.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "model/held_image.h"

namespace doppler::model {

class ImageNumbers {
 public:
  // most_tokens: of a picture.
  ImageNumbers(const images::ImageRules& rules, uint32_t most_tokens)
      : edge_(rules.patch * rules.block), most_tokens_(most_tokens) {}

  // Errors: the picture has more tokens than the devices keep; the numbers are used up.
  // key: a name that only equal pictures share.
  Result<std::shared_ptr<const HeldImage>> add(images::PreparedImage prepared, const std::string& key);
  // The same for a prompt that sees itself. Its pictures have numbers already.
  Result<std::shared_ptr<const HeldImage>> add_prompt(std::span<const uint32_t> tokens);

 private:
  struct Known {
    uint32_t first_token = 0;
    std::weak_ptr<const HeldImage> held;
  };
  Result<std::shared_ptr<const HeldImage>> number(const std::string& key, HeldImage held);

  const uint32_t edge_;  // pixels of a token's side
  const uint32_t most_tokens_;
  std::map<std::string, Known> known_;  // by key, or by a prompt's tokens
  uint32_t next_token_ = kFirstImageToken;
};

// Such a name: SHA-256 of all that the tower's result depends on. Native builds only; elsewhere the host hashes.
std::string image_key(const images::PreparedImage& image);

}  // namespace doppler::model
