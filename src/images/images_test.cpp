// Pictures against references: files by Pillow (upright, on white), pixels, grids and sizes by Hugging Face
// transformers. Cases are folders of tests/data/images.tar.xz, one a family; a new one needs no line here.
#include <gtest/gtest.h>
#include <webp/encode.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "images/decode_native.h"
#include "images/exif.h"
#include "images/prepared_image.h"

namespace doppler::images {
namespace {

namespace fs = std::filesystem;

std::vector<uint8_t> read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

Json read_json(const fs::path& path) {
  if (!fs::exists(path)) return {};
  const std::vector<uint8_t> bytes = read_bytes(path);
  const auto json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
  EXPECT_TRUE(json) << json.error().message();
  return json ? *json : Json();
}

// Tensors of a safetensors file.
struct Tensors {
  explicit Tensors(const fs::path& path) : bytes(read_bytes(path)) {
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
    data = sizeof(header_bytes) + header_bytes;
    header = *parse_json({reinterpret_cast<const char*>(bytes.data()) + 8, header_bytes}, "safetensors");
  }
  template <typename T>
  std::vector<T> get(const std::string& name) const {
    const Json* found = find(header, name);
    if (!found) return {};
    const auto first = (*found)["data_offsets"][0].get<size_t>(),
               end = (*found)["data_offsets"][1].get<size_t>();
    std::vector<T> out((end - first) / sizeof(T));
    std::memcpy(out.data(), bytes.data() + data + first, end - first);
    return out;
  }
  std::vector<size_t> shape(const std::string& name) const {
    std::vector<size_t> out;
    for (const Json& extent : header[name]["shape"]) out.push_back(extent.get<size_t>());
    return out;
  }

  std::vector<uint8_t> bytes;
  size_t data = 0;
  Json header;
};

Picture decoded(const std::string& name) {
  const auto picture = decode_picture(read_bytes(fs::path(IMAGES_DIR) / "images" / name));
  EXPECT_TRUE(picture) << name << ": " << picture.error().message();
  return picture ? *picture : Picture{};
}

TEST(DecodePicture, FilesAreUprightAndOnWhite) {
  const Tensors refs(fs::path(IMAGES_DIR) / "images/refs.safetensors");
  size_t count = 0;
  for (const auto& item : refs.header.items()) {
    const std::string suffix = ".upright_white";
    if (!item.key.ends_with(suffix)) continue;
    const std::string stem = item.key.substr(0, item.key.size() - suffix.size());
    for (const auto& entry : fs::directory_iterator(fs::path(IMAGES_DIR) / "images")) {
      if (entry.path().filename() != stem && entry.path().stem() != stem) continue;
      ++count;
      const Picture picture = decoded(entry.path().filename().string());
      const auto wanted = refs.get<uint8_t>(item.key);
      ASSERT_EQ(picture.rgb.size(), wanted.size()) << item.key;
      EXPECT_EQ(picture.size.height, refs.shape(item.key)[0]) << item.key;
      int worst = 0;
      for (size_t i = 0; i < wanted.size(); ++i)
        worst = std::max(worst, std::abs(picture.rgb[i] - wanted[i]));
      // JPEG leaves the rounding to the decoder.
      EXPECT_LE(worst, entry.path().extension() == ".jpg" ? 1 : 0) << item.key;
    }
  }
  EXPECT_GE(count, 14u);
}

TEST(DecodePicture, OfSixteenBitsTheHighByteStays) {
  const Picture picture = decoded("r_gray16.png");
  const auto [least, most] = std::ranges::minmax_element(picture.rgb);
  EXPECT_LT(*least, 64);
  EXPECT_GT(*most, 128);
}

std::string message_of(std::vector<uint8_t> bytes, const DecodeLimits& limits = {}) {
  const auto picture = decode_picture(bytes, limits);
  return picture ? "" : picture.error().message();
}

TEST(DecodePicture, WhatIsWrongIsNamed) {
  EXPECT_NE(message_of({'%', 'P', 'D', 'F'}).find("begins with the bytes \"25 50 44 46\""),
            std::string::npos);
  const auto png = read_bytes(fs::path(IMAGES_DIR) / "images/a.png");
  EXPECT_NE(message_of(png, {.pixels = 100}).find("61 x 37 pixels; allowed are 100"), std::string::npos);
  EXPECT_NE(message_of(png, {.bytes = 10}).find("allowed are 10"), std::string::npos);
  for (const char* name : {"a.png", "e_420.jpg"}) {
    auto bytes = read_bytes(fs::path(IMAGES_DIR) / "images" / name);
    bytes.resize(40);
    EXPECT_NE(message_of(bytes), "") << name;
  }
}

// Two pixels wide, one high: blue, then white.
TEST(DecodePicture, BmpAndGif) {
  std::vector<uint8_t> bmp = {'B', 'M', 62, 0, 0, 0, 0, 0,  0, 0, 54, 0, 0,   0, 40, 0,   0,   0,   2, 0, 0,
                              0,   1,   0,  0, 0, 1, 0, 24, 0, 0, 0,  0, 0,   8, 0,  0,   0,   0,   0, 0, 0,
                              0,   0,   0,  0, 0, 0, 0, 0,  0, 0, 0,  0, 255, 0, 0,  255, 255, 255, 0, 0};
  const std::vector<uint8_t> wanted = {0, 0, 255, 255, 255, 255};
  auto picture = decode_picture(bmp);
  ASSERT_TRUE(picture) << picture.error().message();
  EXPECT_EQ(picture->rgb, wanted);
  bmp[28] = 16;
  EXPECT_NE(message_of(bmp).find("16 bits a pixel; allowed are 1, 4, 8, 24 and 32"), std::string::npos);

  const std::vector<uint8_t> gif = {'G', 'I', 'F', '8', '9', 'a', 2,   0,    1,    0, 0x80, 0,
                                    0,   0,   0,   255, 255, 255, 255, 0x2C, 0,    0, 0,    0,
                                    2,   0,   1,   0,   0,   2,   2,   0x44, 0x0A, 0, 0x3B};
  picture = decode_picture(gif);
  ASSERT_TRUE(picture) << picture.error().message();
  EXPECT_EQ(picture->rgb, wanted);
}

TEST(DecodePicture, WebPWithoutLossIsThePicture) {
  const Picture picture = decoded("a.png");
  uint8_t* bytes = nullptr;
  const size_t count = WebPEncodeLosslessRGB(picture.rgb.data(), static_cast<int>(picture.size.width),
                                             static_cast<int>(picture.size.height),
                                             static_cast<int>(picture.row_bytes()), &bytes);
  const auto again = decode_picture({bytes, count});
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->rgb, picture.rgb);
  const std::vector<uint8_t> half(bytes, bytes + count / 2);
  EXPECT_NE(message_of(half).find("reading a WebP picture"), std::string::npos) << message_of(half);
  WebPFree(bytes);
}

TEST(Upright, EveryOrientationKeepsTheFirstPixelWhereItBelongs) {
  // 2 x 1: where the first pixel goes.
  Picture picture = Picture::of({2, 1});
  picture.rgb = {9, 9, 9, 0, 0, 0};
  const std::map<uint32_t, std::pair<uint32_t, uint32_t>> places = {
      {1, {0, 0}}, {2, {1, 0}}, {3, {1, 0}}, {4, {0, 0}}, {5, {0, 0}}, {6, {0, 0}}, {7, {0, 1}}, {8, {0, 1}}};
  for (const auto& [orientation, place] : places) {
    const Picture turned = upright(picture, orientation);
    EXPECT_EQ(turned.size.width, orientation >= 5 ? 1u : 2u) << orientation;
    EXPECT_EQ(turned.row(place.second)[place.first * kChannels], 9) << orientation;
  }
}

class Family : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    config_ = read_json(folder() / "config.json");
    processor_ = read_json(folder() / "processor_config.json");
    preprocessor_ = read_json(folder() / "preprocessor_config.json");
    if (preprocessor_.is_null()) preprocessor_ = processor_["image_processor"];
    const auto read = read_image_rules({config_, preprocessor_, processor_});
    ASSERT_TRUE(read) << read.error().message();
    const auto asked = with_pan_and_scan(*read, GetParam() == "gemma3_pan_and_scan");
    ASSERT_TRUE(asked) << asked.error().message();
    rules_ = *asked;
  }
  fs::path folder() const { return fs::path(IMAGES_DIR) / GetParam(); }
  bool is_last() const { return rules_.family->values == PatchValues::kChannelsLast; }

  Json config_, processor_, preprocessor_;
  ImageRules rules_;
};

TEST_P(Family, PixelsAreTheReferences) {
  const Tensors refs(folder() / "pixels.safetensors");
  const Json pictures = read_json(folder() / "pictures.json");
  for (const auto& prompt : pictures.items()) {
    const auto wanted = refs.get<float>(prompt.key + ".pixel_values");
    if (prompt.value.empty()) continue;
    const auto shape = refs.shape(prompt.key + ".pixel_values");
    size_t at = 0, different = 0, count = 0;
    double worst = 0;
    for (const Json& name : prompt.value) {
      const auto prepared = prepare_image(rules_, decoded(name.text()));
      ASSERT_TRUE(prepared) << prepared.error().message();
      for (const Picture& tile : prepared->tiles) {
        const std::vector<float> got = processor_values(rules_, tile);
        // Pixtral's and LFM2's are padded: planes to the largest picture, patches to a number.
        const bool is_planes = shape.size() == 4;
        const size_t padded_width = is_planes ? shape[3] : 0;
        const size_t tile_values = shape.size() == 5   ? got.size()
                                   : is_planes         ? shape[1] * shape[2] * shape[3]
                                   : shape.size() == 3 ? shape[1] * shape[2]
                                                       : got.size();
        for (size_t i = 0; i < got.size(); ++i) {
          size_t place = i;
          if (is_planes) {
            const size_t plane = tile.size.pixels();
            place = (i / plane * shape[2] + i % plane / tile.size.width) * padded_width + i % tile.size.width;
          }
          const double level = std::fabs(got[i] - wanted[at + place]) * 255 * rules_.deviation[0];
          worst = std::max(worst, level);
          different += level > 0.5;
        }
        count += got.size();
        at += tile_values;
      }
    }
    EXPECT_EQ(at, wanted.size()) << prompt.key;
    EXPECT_LT(worst, 1.01) << prompt.key;
    EXPECT_LT(static_cast<double>(different), 1e-3 * static_cast<double>(count)) << prompt.key;
  }
}

// A list of lists of whole numbers.
std::vector<std::vector<uint32_t>> grid_of(const Json& json) {
  std::vector<std::vector<uint32_t>> out;
  for (const Json& row : json) out.push_back(row.get<std::vector<uint32_t>>());
  return out;
}

TEST_P(Family, SizesAreTheReferences) {
  for (const Json& size : read_json(folder() / "sizes.json")) {
    const Size picture{size["width"].get<uint32_t>(), size["height"].get<uint32_t>()};
    const std::string what = GetParam() + format_text(" %u x %u", picture.width, picture.height);
    const auto plan = rules_.family->plan(rules_, picture);
    if (size.contains("error")) {
      EXPECT_FALSE(plan) << what;
      continue;
    }
    ASSERT_TRUE(plan) << what << ": " << plan.error().message();
    const std::vector<Size> tiles = plan->tile_sizes();
    std::vector<std::vector<uint32_t>> patches, grids, pixels;
    uint32_t count = 0, tokens = 0;
    for (const Size& tile : tiles) {
      const uint32_t rows = tile.height / rules_.patch, columns = tile.width / rules_.patch;
      patches.push_back({rows, columns});
      grids.push_back({1, rows, columns});
      pixels.push_back({tile.height, tile.width});
      count += rows * columns;
      tokens += rules_.tokens(tile);
    }
    const auto expect_grid = [&](const char* key, const std::vector<std::vector<uint32_t>>& got) {
      if (!size.contains(key)) return;
      EXPECT_EQ(got, grid_of(size[key])) << what;
    };
    expect_grid("image_grid_thw", grids);
    expect_grid("spatial_shapes", patches);
    if (is_last()) pixels.erase(pixels.begin(), pixels.end() - 1);  // of the whole picture only
    expect_grid("image_sizes", pixels);
    if (size.contains("rows")) {
      EXPECT_EQ(plan->rows, size["rows"][0][0].get<uint32_t>()) << what;
      EXPECT_EQ(plan->columns, size["cols"][0][0].get<uint32_t>()) << what;
    }
    if (size.contains("num_soft_tokens_per_image")) {
      EXPECT_EQ(tokens, size["num_soft_tokens_per_image"][0].get<uint32_t>()) << what;
    }
    const auto shape = size["pixel_values_shape"].get<std::vector<uint32_t>>();
    EXPECT_EQ(shape.size() == 2 ? count : tiles.size(), shape[shape.size() == 5 ? 1 : 0]) << what;
  }
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(IMAGES_DIR)) {
    if (fs::exists(entry.path() / "config.json")) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Cases, Family, testing::ValuesIn(cases()),
                         [](const auto& made) { return made.param; });

// Gemma 3's published numbers: crops of at least 256 pixels, at most 4, from a ratio of 1.2 on.
TEST(PanAndScan, CropsFollowTheLongerEdge) {
  const fs::path folder = fs::path(IMAGES_DIR) / "gemma3";
  const Json config = read_json(folder / "config.json"), none;
  const auto as_told = read_image_rules({config, read_json(folder / "preprocessor_config.json"), none});
  ASSERT_TRUE(as_told) << as_told.error().message();
  const auto rules = with_pan_and_scan(*as_told, true);
  ASSERT_TRUE(rules) << rules.error().message();
  struct Case {
    Size picture;
    std::vector<uint32_t> crops;  // lengths along the longer edge
  };
  const Case cases[] = {
      {{1000, 800}, {500, 500}},
      {{1000, 840}, {}},
      {{2560, 512}, {640, 640, 640, 640}},  // 5 times as long
      {{1001, 400}, {334, 334, 333}},
      {{700, 250}, {}},  // 250 pixels high
      {{510, 420}, {}},  // 255 pixels wide
      {{512, 420}, {256, 256}},
      {{500, 1280}, {427, 427, 426}},
      {{500, 700}, {350, 350}},
      {{600, 600}, {}},
  };
  for (const auto& [picture, crops] : cases) {
    const std::string what = format_text("%u x %u", picture.width, picture.height);
    const auto plan = plan_fixed(*rules, picture);
    ASSERT_TRUE(plan) << what;
    ASSERT_EQ(plan->stages.size(), 1 + crops.size()) << what;
    EXPECT_EQ(plan->stages[0].part.size, picture) << what;
    uint32_t first = 0;
    for (size_t i = 0; i < crops.size(); ++i) {
      const Rect& part = plan->stages[1 + i].part;
      const bool is_wide = picture.width > picture.height;
      EXPECT_EQ(is_wide ? part.x : part.y, first) << what;
      EXPECT_EQ(part.size, (is_wide ? Size{crops[i], picture.height} : Size{picture.width, crops[i]}))
          << what;
      EXPECT_EQ(plan->stages[1 + i].size, rules->size) << what;
      first += crops[i];
    }
    const auto shape = shape_of(*rules, picture), whole = shape_of(*as_told, picture);
    ASSERT_TRUE(shape && whole) << what;
    EXPECT_EQ(shape->tokens, (1 + crops.size()) * most_tile_tokens(*rules)) << what;
    EXPECT_EQ(whole->tokens, most_tile_tokens(*rules)) << what;
  }
  EXPECT_EQ(most_tokens(*as_told), 5 * most_tile_tokens(*as_told));
}

TEST(PanAndScan, IsNotFollowedUnlessItIsAskedFor) {
  const fs::path folder = fs::path(IMAGES_DIR) / "gemma3_pan_and_scan";  // its file says do_pan_and_scan
  const Json none;
  const auto rules = read_image_rules(
      {read_json(folder / "config.json"), read_json(folder / "preprocessor_config.json"), none});
  ASSERT_TRUE(rules) << rules.error().message();
  EXPECT_EQ(shape_of(*rules, {224, 100})->tiles.size(), 1u);
  const auto on = with_pan_and_scan(*rules, true);
  ASSERT_TRUE(on);
  EXPECT_EQ(shape_of(*on, {224, 100})->tiles.size(), 3u);
  EXPECT_EQ(shape_of(*with_pan_and_scan(*on, std::nullopt), {224, 100})->tiles.size(), 3u);
  EXPECT_EQ(shape_of(*with_pan_and_scan(*on, false), {224, 100})->tiles.size(), 1u);
}

TEST(PanAndScan, OtherFamiliesRefuseItByName) {
  const fs::path folder = fs::path(IMAGES_DIR) / "qwen3_vl";
  const Json none;
  const auto rules = read_image_rules(
      {read_json(folder / "config.json"), read_json(folder / "preprocessor_config.json"), none});
  ASSERT_TRUE(rules) << rules.error().message();
  EXPECT_TRUE(with_pan_and_scan(*rules, false));
  const auto refused = with_pan_and_scan(*rules, true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().message(),
      "Pictures of the model type \"qwen3_vl\" have no pan and scan (--pan-and-scan); those of gemma3 have.");
}

TEST(ImageRules, MissingNumbersAreNamed) {
  const Json config = {{"model_type", "qwen3_vl"}};
  const Json empty = Json::object();
  auto rules = read_image_rules({config, empty, empty});
  ASSERT_FALSE(rules);
  EXPECT_NE(rules.error().message().find("\"image_mean\" of preprocessor_config.json"), std::string::npos)
      << rules.error().message();
  rules = read_image_rules({{{"model_type", "llama"}}, empty, empty});
  ASSERT_FALSE(rules);
  EXPECT_NE(rules.error().message().find("\"llama\" are not known; known are qwen2_5_vl"), std::string::npos);
}

}  // namespace
}  // namespace doppler::images
