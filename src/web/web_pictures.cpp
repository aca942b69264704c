#include "web/web_pictures.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/bytes.h"
#include "base/sha256.h"

namespace doppler::web {
namespace {

struct Header {
  uint32_t width = 0, height = 0, detail = 0;
};
constexpr size_t kHeader = sizeof(Sha256) + sizeof(Header);
constexpr uint64_t kMostPixels = 64ull << 20;

Header read_header(std::span<const uint8_t> bytes) {
  Header out;
  if (bytes.size() >= kHeader) std::memcpy(&out, bytes.data() + sizeof(Sha256), sizeof(out));
  return out;
}

Result<images::Picture> read_picture(std::span<const uint8_t> bytes, const Header& header) {
  const images::Size size{header.width, header.height};
  const bool is_bounded = size.pixels() != 0 && size.pixels() <= kMostPixels;
  if (!is_bounded || bytes.size() - kHeader != size.pixels() * images::kChannels) {
    return fail(ErrorKind::kInvalidInput,
                "A picture of %u x %u pixels has %zu bytes; allowed are up to %llu pixels.", size.width,
                size.height, bytes.size(), static_cast<unsigned long long>(kMostPixels));
  }
  return images::Picture{size, {bytes.begin() + kHeader, bytes.end()}};
}

}  // namespace

Result<Json> WebPictures::add(std::span<const uint8_t> bytes) {
  DP_TRY(const engine::ImageMarks* const marks, engine::marks_of(loaded_.text));
  const Header header = read_header(bytes);
  DP_TRY(const images::Picture picture, read_picture(bytes, header));
  const auto in_detail = header.detail != 0 ? std::optional(header.detail == 2) : std::nullopt;
  DP_TRY(const images::ImageRules rules,
         images::with_pan_and_scan(marks->rules, engine::pan_and_scan_of(*marks, in_detail)));
  DP_TRY(images::PreparedImage prepared, images::prepare_image(rules, picture));
  if (!numbers_) numbers_.emplace(marks->rules, loaded_.runner->images()->capacity());
  const std::string key(bytes.begin(), bytes.begin() + sizeof(Sha256));
  DP_TRY(auto held, numbers_->add(std::move(prepared), key));
  keep(std::move(held));
  return Json({{"picture", last_}});
}

void WebPictures::keep(std::shared_ptr<const model::HeldImage> held) {
  std::erase_if(kept_, [&](const Kept& each) { return each.held == held; });
  if (kept_.size() == kMost) kept_.pop_front();
  kept_.push_back({.number = ++last_, .held = std::move(held)});
}

Result<std::vector<uint32_t>> WebPictures::encode(const std::string& text,
                                                  std::span<const openai::Picture> pictures) {
  DP_TRY(const engine::ImageMarks* const marks, engine::marks_of(loaded_.text));
  engine::HeldImages held;
  std::vector<images::ImageShape> shapes;
  for (const auto& [name, detail] : pictures) {
    uint32_t number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    const auto found = std::ranges::find(kept_, number, &Kept::number);
    if (found == kept_.end()) {
      return fail(ErrorKind::kInvalidInput, "A chat shows more than %zu pictures.", kMost);
    }
    held.push_back(found->held);
    shapes.push_back(found->held->prepared.shape);
  }
  DP_TRY(const std::string expanded, engine::expand_images(*marks, text, shapes));
  DP_TRY(const std::vector<int32_t> ids,
         loaded_.text.tokenizer->encode(expanded, {.add_special = false, .parse_special = true}));
  DP_TRY(const std::vector<uint32_t> tokens,
         engine::place_images(*marks, std::vector<uint32_t>(ids.begin(), ids.end()), held, *numbers_));
  if (held.size() > pictures.size()) keep(held.back());
  return tokens;
}

engine::HeldImages WebPictures::named_by(std::span<const uint32_t> tokens) const {
  engine::HeldImages out;
  for (const Kept& each : kept_) {
    if (std::ranges::none_of(tokens, [&](uint32_t token) { return each.held->has(token); })) continue;
    out.push_back(each.held);
    if (each.held->prompt.empty()) continue;
    const engine::HeldImages inner = named_by(each.held->prompt);
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

}  // namespace doppler::web
