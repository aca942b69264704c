// The pictures of a loaded model: numbers that stand for their tokens in prompts, and their rows on the device.
// A picture's tokens have numbers from kFirstImageToken on, one after another, which no other picture has, so that two
// texts are the same exactly if their numbers are: prefixes that differ in a picture differ. The same picture, prepared
// alike, has the same numbers again. Its rows are made when a step first reads them, and kept in turn.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/image_encoder.h"

namespace doppler::model {

inline constexpr uint32_t kFirstImageToken = 0x80000000;
inline constexpr uint32_t kEndImageTokens = 0xF0000000;
inline bool is_image_token(uint32_t token) { return token >= kFirstImageToken && token < kEndImageTokens; }

// A picture that prompts may hold. As long as one holds it, its rows can be made.
struct HeldImage {
  uint32_t first_token = 0;  // its tokens' numbers begin here
  images::PreparedImage prepared;
  uint32_t tokens() const { return prepared.tokens(); }
};

class ImageStore {
 public:
  // rows: of all pictures on the device.
  ImageStore(gpu::Device& device, std::unique_ptr<ImageEncoder> encoder, uint32_t rows)
      : device_(device), encoder_(std::move(encoder)), capacity_(rows) {}
  Task<Result<void>> make_buffer();

  const ImageEncoder& encoder() const { return *encoder_; }
  const gpu::Buffer& buffer() const { return buffer_; }
  uint32_t capacity() const { return capacity_; }

  // Errors: the picture has more tokens than the device keeps; the numbers are used up.
  Result<std::shared_ptr<const HeldImage>> add(images::PreparedImage prepared);
  bool knows(uint32_t token) const { return find(token) != nullptr; }

  // Where the device has the rows of a step's tokens; kernels::kNoImage for those of text. Rows that are missing are made
  // first. Errors: nobody holds the picture any more.
  Result<std::vector<uint32_t>> places(std::span<const uint32_t> tokens);

  // Multi-axis positions. A picture takes as many positions of the text as its longer side has tokens. shift: what is
  // added to the position of a token before it rotates.
  uint32_t shift_behind(uint32_t shift, std::span<const uint32_t> tokens) const;
  // For each token what is added on each axis: time, height, width and a 0. `shift` becomes that behind them.
  std::vector<uint32_t> axes(uint32_t& shift, std::span<const uint32_t> tokens) const;

  // Of texts whose tokens of a tile see each other: the first and the last position that each token sees
  // (kernels::Attention::spans), the first of them at `pos`. window: of the positions before its own, its own included; 0:
  // all. And how many of the `rows` next tokens a step may have that must not end inside a tile: at least 1.
  std::vector<uint32_t> spans(std::span<const uint32_t> tokens, uint32_t pos, uint32_t window) const;
  uint32_t uncut_rows(std::span<const uint32_t> tokens, uint32_t rows) const;

  // The rows of a picture as they are on the device, for tests and dumps.
  Task<Result<std::vector<float>>> read(const HeldImage& image);
  uint64_t encoded_count() const { return encoded_count_; }

 private:
  struct Known {
    uint32_t tokens = 0;
    uint32_t rows = 0, columns = 0;  // of tokens
    uint32_t tile_tokens = 0;
    std::vector<uint32_t> row_order;  // ImageEncoder::row_order()
    std::optional<uint32_t> place;   // on the device
    std::weak_ptr<const HeldImage> held;
  };
  using KnownImages = std::map<uint32_t, Known>;  // by first token
  const KnownImages::value_type* find(uint32_t token) const;
  Result<uint32_t> make_room(uint32_t first_token, uint32_t rows);

  gpu::Device& device_;
  std::unique_ptr<ImageEncoder> encoder_;
  gpu::Buffer buffer_;
  const uint32_t capacity_;
  KnownImages images_;
  std::map<std::string, uint32_t> by_key_;
  uint32_t next_token_ = kFirstImageToken;
  uint32_t next_row_ = 0;
  uint64_t encoded_count_ = 0;
};

// A name that only equal pictures share; empty: this host cannot make one.
std::string image_key(const images::PreparedImage& image);

}  // namespace doppler::model
