#include "model/image_store.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/image_rows/image_rows.h"

namespace doppler::model {

Task<Result<void>> ImageStore::make_buffer() {
  gpu::BufferDesc desc{.name = "images",
                       .bytes = (uint64_t{capacity_} * encoder_->row_size() * sizeof(float) + 255) / 256 * 256,
                       .use = gpu::BufferUse::kStorage};
  DP_CO_TRY(buffer_, co_await device_.create_buffer(std::move(desc)));
  co_return Result<void>();
}

const ImageStore::KnownImages::value_type* ImageStore::find(uint32_t token) const {
  if (!is_image_token(token)) return nullptr;
  auto behind = images_.upper_bound(token);
  if (behind == images_.begin()) return nullptr;
  const auto& image = *std::prev(behind);
  return token - image.first < image.second.tokens ? &image : nullptr;
}

Result<std::shared_ptr<const HeldImage>> ImageStore::add(images::PreparedImage prepared) {
  if (prepared.tokens() == 0 || prepared.tokens() > capacity_) {
    return fail(ErrorKind::kUnsupported, "A picture has %u tokens; this model was loaded for up to %u.",
                prepared.tokens(), capacity_);
  }
  const std::string key = image_key(prepared);
  if (const auto known = by_key_.find(key); !key.empty() && known != by_key_.end()) {
    Known& image = images_.at(known->second);
    if (auto held = image.held.lock()) return held;
    auto held = std::make_shared<HeldImage>(
        HeldImage{.first_token = known->second, .prepared = std::move(prepared)});
    image.held = held;
    return held;
  }
  if (prepared.tokens() > kEndImageTokens - next_token_) {
    return fail(ErrorKind::kOutOfMemory, "Too many pictures were shown to this model; load it again.");
  }
  const images::Size tile = prepared.tiles.front().size;
  const uint32_t edge = encoder_->rules().patch * encoder_->rules().block;
  Known image{.tokens = prepared.tokens(),
              .rows = tile.height / edge,
              .columns = tile.width / edge,
              .tile_tokens = encoder_->rules().tokens(tile),
              .row_order = encoder_->row_order(prepared),
              .place = {},
              .held = {}};
  auto held =
      std::make_shared<HeldImage>(HeldImage{.first_token = next_token_, .prepared = std::move(prepared)});
  image.held = held;
  if (!key.empty()) by_key_.emplace(key, next_token_);
  images_.emplace(next_token_, std::move(image));
  next_token_ += held->tokens();
  return held;
}

// The next rows in turn; pictures that had them lose theirs.
Result<uint32_t> ImageStore::make_room(uint32_t first_token, uint32_t rows) {
  if (next_row_ + rows > capacity_) next_row_ = 0;
  const uint32_t first = next_row_, end = first + rows;
  for (auto& [token, image] : images_) {
    if (image.place && *image.place < end && *image.place + image.tokens > first) image.place.reset();
  }
  images_.at(first_token).place = first;
  next_row_ = end;
  return first;
}

Result<std::vector<uint32_t>> ImageStore::places(std::span<const uint32_t> tokens) {
  std::vector<uint32_t> out(tokens.size(), kernels::kNoImage);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto* image = find(tokens[i]);
    if (!image) continue;
    if (!image->second.place) {
      const std::shared_ptr<const HeldImage> held = image->second.held.lock();
      if (!held) {
        return fail(ErrorKind::kInternal, "A prompt names a picture that nobody holds any more.");
      }
      DP_TRY(const uint32_t first, make_room(image->first, image->second.tokens));
      DP_CHECK(encoder_->encode(held->prepared, buffer_, first));
      ++encoded_count_;
    }
    const uint32_t at = tokens[i] - image->first;
    out[i] = *image->second.place + (image->second.row_order.empty() ? at : image->second.row_order[at]);
  }
  return out;
}

std::vector<uint32_t> ImageStore::axes(uint32_t& shift, std::span<const uint32_t> tokens) const {
  std::vector<uint32_t> out;
  out.reserve(tokens.size() * 4);
  for (const uint32_t token : tokens) {
    const auto* image = find(token);
    const Known* known = image ? &image->second : nullptr;
    const uint32_t at = image ? token - image->first : 0;
    const uint32_t time = shift - at;
    const uint32_t columns = known ? known->columns : 1;
    out.insert(out.end(), {time, time + (known ? at / columns : 0), time + (known ? at % columns : 0), 0u});
    if (known && at + 1 == known->tokens) shift += std::max(known->rows, known->columns) - known->tokens;
  }
  return out;
}

uint32_t ImageStore::shift_behind(uint32_t shift, std::span<const uint32_t> tokens) const {
  for (const uint32_t token : tokens) {
    const auto* image = find(token);
    if (!image || token - image->first + 1 != image->second.tokens) continue;
    shift += std::max(image->second.rows, image->second.columns) - image->second.tokens;
  }
  return shift;
}

std::vector<uint32_t> ImageStore::spans(std::span<const uint32_t> tokens, uint32_t pos, uint32_t window) const {
  std::vector<uint32_t> out;
  out.reserve(2 * tokens.size());
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    const uint32_t position = pos + i;
    uint32_t first = window == 0 ? 0 : position - std::min(position, window - 1), last = position;
    if (const auto* image = find(tokens[i])) {
      const uint32_t of_tile = image->second.tile_tokens, at = (tokens[i] - image->first) % of_tile;
      first = std::min(first, position - std::min(position, at));
      last = position + of_tile - 1 - at;
    }
    out.insert(out.end(), {first, last});
  }
  return out;
}

uint32_t ImageStore::uncut_rows(std::span<const uint32_t> tokens, uint32_t rows) const {
  if (rows >= tokens.size()) return static_cast<uint32_t>(tokens.size());
  const auto* image = find(tokens[rows - 1]);
  if (!image) return rows;
  const uint32_t of_tile = image->second.tile_tokens, at = (tokens[rows - 1] - image->first) % of_tile;
  if (at + 1 == of_tile) return rows;
  if (at + 1 < rows) return rows - 1 - at;  // before the tile
  return std::min(rows + of_tile - 1 - at, static_cast<uint32_t>(tokens.size()));
}

Task<Result<std::vector<float>>> ImageStore::read(const HeldImage& image) {
  std::vector<uint32_t> tokens(image.tokens());
  std::iota(tokens.begin(), tokens.end(), image.first_token);
  DP_CO_TRY(const std::vector<uint32_t> rows, places(tokens));
  const uint32_t first = std::ranges::min(rows);
  const uint64_t row_bytes = encoder_->row_size() * sizeof(float);
  DP_CO_TRY(const std::vector<uint8_t> bytes,
            co_await device_.read_buffer({buffer_.id(), first * row_bytes, image.tokens() * row_bytes}));
  std::vector<float> out(bytes.size() / sizeof(float));
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(&out[i * encoder_->row_size()], &bytes[(rows[i] - first) * row_bytes], row_bytes);
  }
  co_return out;
}

}  // namespace doppler::model
