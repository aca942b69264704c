#include "model/image_store.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernels/image_rows/image_rows.h"

namespace doppler::model {
namespace {

// Pictures that are remembered, before those that nobody uses are forgotten.
constexpr size_t kMostRemembered = 4096;

}  // namespace

Task<Result<void>> ImageStore::make_buffer() {
  gpu::BufferDesc desc{
      .name = "images",
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

void ImageStore::take(const std::shared_ptr<const HeldImage>& image) {
  if (const auto known = images_.find(image->first_token); known != images_.end()) {
    known->second.held = image;
    return;
  }
  forget_unused();
  images_.emplace(image->first_token, Known{.tokens = image->tokens(),
                                            .rows = image->rows,
                                            .columns = image->columns,
                                            .place = {},
                                            .held = image,
                                            .prompt = image->prompt});
}

void ImageStore::forget_unused() {
  if (images_.size() < kMostRemembered) return;
  std::erase_if(images_,
                [](const auto& image) { return image.second.held.expired() && !image.second.place; });
}

std::vector<uint32_t> ImageStore::within(std::span<const uint32_t> tokens) const {
  std::vector<uint32_t> out(tokens.begin(), tokens.end());
  for (uint32_t& token : out) {
    const auto* image = find(token);
    if (image && !image->second.prompt.empty()) token = image->second.prompt[token - image->first];
  }
  return out;
}

// The pictures that tokens name, by first token.
std::vector<uint32_t> ImageStore::named_by(std::span<const uint32_t> tokens) const {
  std::vector<uint32_t> out;
  for (const uint32_t token : within(tokens)) {
    const auto* image = find(token);
    if (image && (out.empty() || out.back() != image->first)) out.push_back(image->first);
  }
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

uint64_t ImageStore::rows_named_by(std::span<const uint32_t> tokens) const {
  uint64_t rows = 0;
  for (const uint32_t first : named_by(tokens)) rows += images_.at(first).tokens;
  return rows;
}

// Gives a picture the next rows in turn. Pictures that have them lose them. False: one of `kept` has them.
bool ImageStore::take_rows(uint32_t first_token, std::span<const uint32_t> kept) {
  Known& taker = images_.at(first_token);
  if (next_row_ + taker.tokens > capacity_) next_row_ = 0;
  const uint32_t first = next_row_, end = first + taker.tokens;
  const auto overlaps = [&](const Known& image) {
    return image.place && *image.place < end && *image.place + image.tokens > first;
  };
  if (std::ranges::any_of(kept, [&](uint32_t token) { return overlaps(images_.at(token)); })) return false;
  for (auto& [token, image] : images_) {
    if (overlaps(image)) image.place.reset();
  }
  taker.place = first;
  next_row_ = end;
  return true;
}

Result<void> ImageStore::make_rows(uint32_t first_token) {
  const std::shared_ptr<const HeldImage> held = images_.at(first_token).held.lock();
  if (!held) return fail(ErrorKind::kInternal, "A prompt names a picture that nobody holds any more.");
  ++encoded_count_;
  return encoder_->encode(held->prepared, buffer_, *images_.at(first_token).place);
}

// Rows for all pictures of a step. If those that are there are in the way of others, all begin anew.
Result<void> ImageStore::bring(std::span<const uint32_t> pictures) {
  for (const uint32_t first : pictures) {
    if (images_.at(first).place) continue;
    if (take_rows(first, pictures)) {
      DP_CHECK(make_rows(first));
      continue;
    }
    for (auto& [token, image] : images_) image.place.reset();
    next_row_ = 0;
    for (const uint32_t each : pictures) {
      if (!take_rows(each, pictures)) {
        return fail(ErrorKind::kInternal,
                    "The pictures of a step have more tokens than the device keeps (%u).", capacity_);
      }
      DP_CHECK(make_rows(each));
    }
    return {};
  }
  return {};
}

Result<std::vector<uint32_t>> ImageStore::places(std::span<const uint32_t> tokens) {
  DP_CHECK(bring(named_by(tokens)));
  const std::vector<uint32_t> inner = within(tokens);
  std::vector<uint32_t> out(inner.size(), kernels::kNoImage);
  for (size_t i = 0; i < inner.size(); ++i) {
    const auto* image = find(inner[i]);
    if (!image) continue;
    out[i] = *image->second.place + (inner[i] - image->first);
  }
  return out;
}

std::vector<uint32_t> ImageStore::axes(uint32_t& shift, std::span<const uint32_t> tokens) const {
  std::vector<uint32_t> out;
  out.reserve(tokens.size() * 4);
  for (const uint32_t token : within(tokens)) {
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
  for (const uint32_t token : within(tokens)) {
    const auto* image = find(token);
    if (!image || token - image->first + 1 != image->second.tokens) continue;
    shift += std::max(image->second.rows, image->second.columns) - image->second.tokens;
  }
  return shift;
}

std::optional<ImageStore::InTile> ImageStore::in_tile(uint32_t token) const {
  const auto* image = find(token);
  if (!image) return std::nullopt;
  const Known& known = image->second;
  const uint32_t count = known.prompt.empty() ? known.rows * known.columns : known.tokens;
  return InTile{.at = (token - image->first) % count, .count = count};
}

std::vector<uint32_t> ImageStore::spans(uint32_t pos, std::span<const uint32_t> tokens,
                                        uint32_t window) const {
  std::vector<uint32_t> out;
  out.reserve(tokens.size() * 2);
  const bool ends_at_window = encoder_->tower().tower.sight == formats::PictureSight::kTileInWindow;
  for (uint32_t i = 0; i < tokens.size(); ++i) {
    const uint32_t own = pos + i, before = window == 0 ? own : std::min(own, window - 1);
    const bool sees_tile = window != 0 || !ends_at_window;
    const std::optional<InTile> tile = sees_tile ? in_tile(tokens[i]) : std::nullopt;
    const bool begins_earlier = tile && !ends_at_window;
    const uint32_t first =
        begins_earlier ? std::min(own - before, own - std::min(own, tile->at)) : own - before;
    out.insert(out.end(), {first, tile ? own + tile->count - 1 - tile->at : own});
  }
  return out;
}

// Up to where the tile begins that goes on after `rows`, or if it begins here, up to where it ends.
uint32_t ImageStore::uncut_rows(std::span<const uint32_t> tokens, uint32_t rows) const {
  if (rows >= tokens.size()) return rows;
  const std::optional<InTile> tile = in_tile(tokens[rows]);
  if (!tile || tile->at == 0) return rows;
  if (tile->at < rows) return rows - tile->at;
  return static_cast<uint32_t>(std::min<size_t>(tokens.size(), rows + tile->count - tile->at));
}

Task<Result<std::vector<float>>> ImageStore::read(const HeldImage& image) {
  if (!image.prompt.empty()) co_return std::vector<float>();  // those of its pictures are theirs
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
