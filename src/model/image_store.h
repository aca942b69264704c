// A device keeps the results of the tower here: a row for each token of a picture. A picture's rows are made when a
// step first reads them, and kept in turn.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/held_image.h"
#include "model/image_encoder.h"

namespace doppler::model {

class ImageStore {
 public:
  // rows: of all pictures on the device.
  ImageStore(gpu::Device& device, std::unique_ptr<ImageEncoder> encoder, uint32_t rows)
      : device_(device), encoder_(std::move(encoder)), capacity_(rows) {}
  Task<Result<void>> make_buffer();

  const ImageEncoder& encoder() const { return *encoder_; }
  ImageEncoder& encoder() { return *encoder_; }
  const gpu::Buffer& buffer() const { return buffer_; }
  uint32_t capacity() const { return capacity_; }

  // Prompts may have this picture from now on.
  void take(const std::shared_ptr<const HeldImage>& image);
  bool knows(uint32_t token) const { return find(token) != nullptr; }
  // The tokens of a text, in which those of prompts that see themselves have numbers.
  std::vector<uint32_t> within(std::span<const uint32_t> tokens) const;

  // Where the device has the rows of a step's tokens; kernels::kNoImage for those of text. Rows that are missing are
  // made first. Errors: nobody holds the picture any more.
  Result<std::vector<uint32_t>> places(std::span<const uint32_t> tokens);
  // The number of rows of all pictures that tokens name, in whole or in part. A step may name capacity() rows.
  uint64_t rows_named_by(std::span<const uint32_t> tokens) const;

  // Multi-axis positions. A picture takes as many positions of the text as its longer side has tokens. shift: what is
  // added to the position of a token before it rotates.
  uint32_t shift_behind(uint32_t shift, std::span<const uint32_t> tokens) const;
  // For each token what is added on each axis: time, height, width and a 0. `shift` becomes that after them.
  std::vector<uint32_t> axes(uint32_t& shift, std::span<const uint32_t> tokens) const;

  // For models in which the tokens of a tile see each other. The first and the last key that each token from position
  // `pos` on sees: its own, those before it up to `window` keys in all (0: all), and those of its tile.
  std::vector<uint32_t> spans(uint32_t pos, std::span<const uint32_t> tokens, uint32_t window) const;
  uint32_t uncut_rows(std::span<const uint32_t> tokens, uint32_t rows) const;

  // The rows of a picture on the device, for tests and dumps.
  Task<Result<std::vector<float>>> read(const HeldImage& image);
  uint64_t encoded_count() const { return encoded_count_; }

 private:
  struct Known {
    uint32_t tokens = 0;
    uint32_t rows = 0, columns = 0;  // of tokens
    std::optional<uint32_t> place;   // on the device
    std::weak_ptr<const HeldImage> held;
    std::vector<uint32_t> prompt;  // HeldImage::prompt
  };
  using KnownImages = std::map<uint32_t, Known>;  // by first token
  const KnownImages::value_type* find(uint32_t token) const;
  // The tokens of a tile or of a prompt that sees itself, and where this token is among them; nothing for a token of
  // text.
  struct InTile {
    uint32_t at = 0, count = 0;
  };
  std::optional<InTile> in_tile(uint32_t token) const;
  std::vector<uint32_t> named_by(std::span<const uint32_t> tokens) const;
  bool take_rows(uint32_t first_token, std::span<const uint32_t> kept);
  Result<void> make_rows(uint32_t first_token);
  Result<void> bring(std::span<const uint32_t> pictures);
  void forget_unused();

  gpu::Device& device_;
  std::unique_ptr<ImageEncoder> encoder_;
  gpu::Buffer buffer_;
  const uint32_t capacity_;
  KnownImages images_;
  uint32_t next_row_ = 0;
  uint64_t encoded_count_ = 0;
};

}  // namespace doppler::model
