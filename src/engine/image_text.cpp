#include "engine/image_text.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace doppler::engine {
namespace {

using images::ImageRules;
using images::ImageShape;
using images::Size;

const std::string& own_token(const ImageWords& words) { return words.token; }
const std::string& begin_token(const ImageWords& words) { return words.begin; }

std::string repeated(std::string_view token, uint32_t count) {
  std::string out;
  out.reserve(token.size() * count);
  for (uint32_t i = 0; i < count; ++i) out += token;
  return out;
}

std::string only_tokens(const ImageWords& words, const ImageRules&, const ImageShape& image) {
  return repeated(words.token, image.tokens);
}

std::string between_marks(const ImageWords& words, const ImageRules&, const ImageShape& image) {
  return words.begin + repeated(words.token, image.tokens) + words.end;
}

std::string gemma3(const ImageWords& words, const ImageRules& rules, const ImageShape& image) {
  const auto tile_text = [&](const Size& tile) {
    return "\n\n" + words.begin + repeated(words.token, rules.tokens(tile)) + words.end + "\n\n";
  };
  if (image.tiles.size() == 1) return tile_text(image.tiles[0]);
  std::string out = "Here is the original image " + tile_text(image.tiles[0]) +
                    " and here are some crops to help you see better ";
  for (size_t i = 1; i < image.tiles.size(); ++i) out += (i == 1 ? "" : " ") + tile_text(image.tiles[i]);
  return out;
}

std::string idefics3(const ImageWords& words, const ImageRules& rules, const ImageShape& image) {
  constexpr const char* kAround = "<fake_token_around_image>";
  std::string out;
  for (uint32_t i = 0; i < image.columns * image.rows; ++i) {
    const uint32_t row = i / image.columns, column = i % image.columns;
    out += kAround + format_text("<row_%u_col_%u>", row + 1, column + 1) +
           repeated(words.token, rules.tokens(image.tiles[i]));
    if (column + 1 == image.columns) out += "\n";
  }
  if (!out.empty()) out += "\n";
  return out + kAround + "<global-img>" + repeated(words.token, rules.tokens(image.tiles.back())) + kAround;
}

std::string lfm2_vl(const ImageWords& words, const ImageRules& rules, const ImageShape& image) {
  std::string out = "<|image_start|>";
  for (uint32_t i = 0; i < image.columns * image.rows; ++i) {
    out += format_text("<|img_row_%u_col_%u|>", i / image.columns + 1, i % image.columns + 1) +
           repeated(words.token, rules.tokens(image.tiles[i]));
  }
  if (image.columns != 0) out += "<|img_thumbnail|>";
  return out + repeated(words.token, rules.tokens(image.tiles.back())) + "<|image_end|>";
}

std::string pixtral(const ImageWords& words, const ImageRules& rules, const ImageShape& image) {
  const uint32_t edge = rules.patch * rules.block;
  const uint32_t rows = image.tiles[0].height / edge, columns = image.tiles[0].width / edge;
  std::string out;
  for (uint32_t row = 0; row < rows; ++row) {
    out += repeated(words.token, columns) + (row + 1 == rows ? "[IMG_END]" : "[IMG_BREAK]");
  }
  return out;
}

std::string internvl(const ImageWords& words, const ImageRules&, const ImageShape& image) {
  return "<img>" + repeated(words.token, image.tokens) + "</img>";
}

std::string before_text(const ImageWords& words, std::string text) {
  const size_t last = text.rfind(words.token);
  text.insert(last == text.npos ? 0 : last + words.token.size(), words.bos);
  return text + "\n";
}

// Pictures first, then what the conversation says.
constexpr std::string_view kPictureTemplate =
    "{% for message in messages %}{% if message.content is not string %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<image>{% endif %}{% endfor %}{% endif %}{% endfor %}"
    "{% for message in messages %}{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}{% if part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}"
    "{% endif %}{% endfor %}";

constexpr ImageText kTexts[] = {
    {"qwen2_5_vl", own_token, only_tokens, "<|image_pad|>"},
    {"qwen3_vl", own_token, only_tokens, "<|image_pad|>"},
    {"qwen3_5", own_token, only_tokens, "<|image_pad|>"},
    {"glm4v", own_token, only_tokens, "<|image|>"},
    {"glm46v", own_token, only_tokens, "<|image|>"},
    {"llava", own_token, only_tokens, "<image>"},
    {"gemma3", begin_token, gemma3, "<image_soft_token>", "<start_of_image>", "<end_of_image>"},
    {"idefics3", own_token, idefics3, "<image>"},
    {"smolvlm", own_token, idefics3, "<image>"},
    {"lfm2_vl", own_token, lfm2_vl, "<image>"},
    {"pixtral", own_token, pixtral, "[IMG]"},
    {"mistral3", own_token, pixtral, "[IMG]"},
    {"internvl", own_token, internvl, "<IMG_CONTEXT>"},
    {"gemma4", own_token, between_marks, "<|image|>", "<|image>", "<image|>"},
    {"paligemma", own_token, only_tokens, "<image>", "", "", before_text, kPictureTemplate},
};

}  // namespace

const ImageText* find_image_text(std::string_view model_type) {
  const auto* found = std::ranges::find(kTexts, model_type, &ImageText::model_type);
  return found == std::end(kTexts) ? nullptr : found;
}

}  // namespace doppler::engine
