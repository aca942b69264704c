// The pictures of a model's conversations. The host decodes files and gives pixels; a chat then names them by number.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/image_prompt.h"
#include "engine/loaded_model.h"
#include "model/image_numbers.h"
#include "openai/image_parts.h"

namespace doppler::web {

class WebPictures {
 public:
  // `loaded` must outlive it. Pictures of a model that reads none are refused.
  explicit WebPictures(const engine::LoadedModel& loaded) : loaded_(loaded) {}

  // bytes: a SHA-256 of the rest, then width, height and detail (u32), and the pixels [height, width, 3]. Detail is 1
  // for low, 2 for high, or 0. Answers {"picture"}: its number for chats. The last kMost pictures are kept.
  Result<Json> add(std::span<const uint8_t> bytes);
  // The tokens of a chat's text. pictures: their files are their numbers, in the text's order. Errors: a picture is not
  // kept; the text has other places than the pictures.
  Result<std::vector<uint32_t>> encode(const std::string& text, std::span<const openai::Picture> pictures);
  // Those that tokens name, by way of a prompt that sees itself too.
  engine::HeldImages named_by(std::span<const uint32_t> tokens) const;

 private:
  static constexpr size_t kMost = 64;
  struct Kept {
    uint32_t number = 0;
    std::shared_ptr<const model::HeldImage> held;
  };

  void keep(std::shared_ptr<const model::HeldImage> held);

  const engine::LoadedModel& loaded_;
  std::optional<model::ImageNumbers> numbers_;  // begun with the first picture
  std::deque<Kept> kept_;
  uint32_t last_ = 0;
};

}  // namespace doppler::web
