#include "engine/image_prompt.h"

#include <numeric>

#include "base/json.h"

namespace doppler::engine {
namespace {

constexpr const char* kTokenFields[] = {"image_token_id", "image_token_index"};
constexpr const char* kBeginFields[] = {"boi_token_index", "boi_token_id"};
constexpr const char* kEndFields[] = {"eoi_token_index", "eoi_token_id"};

Result<std::optional<uint32_t>> token_of(const Json& config, std::span<const char* const> fields,
                                         uint32_t vocab_size) {
  for (const char* field : fields) {
    DP_TRY(const auto id, get_integer(config, field));
    if (id && *id >= 0 && *id < vocab_size) return static_cast<uint32_t>(*id);
  }
  return std::nullopt;
}

}  // namespace

Result<ImageMarks> image_marks(const Json& config, const images::ImageRules& rules, uint32_t vocab_size,
                               const tokenizer::Tokenizer* tokenizer) {
  ImageMarks marks{
      .rules = rules, .text = find_image_text(rules.family->model_type), .words = {}, .token = 0};
  const auto find_token = [&](std::span<const char* const> fields,
                              const char* word) -> Result<std::optional<uint32_t>> {
    DP_TRY(const std::optional<uint32_t> token, token_of(config, fields, vocab_size));
    if (token || !tokenizer || !marks.text) return token;
    const auto known = tokenizer->find(word);
    if (known) return static_cast<uint32_t>(*known);
    return std::nullopt;
  };
  DP_TRY(const auto token, find_token(kTokenFields, marks.text ? marks.text->token : ""));
  if (!token) {
    return fail(ErrorKind::kInvalidInput,
                "The model's files do not say which token stands for pictures (%s in config.json%s%s).",
                kTokenFields[0], marks.text ? ", or a token " : "", marks.text ? marks.text->token : "");
  }
  marks.token = *token;
  if (!tokenizer) {
    marks.text = nullptr;
    return marks;
  }
  const auto text_of = [&](std::optional<uint32_t> id) {
    return id ? std::string(tokenizer->token_text(static_cast<int32_t>(*id))) : std::string();
  };
  DP_TRY(const auto begin, find_token(kBeginFields, marks.text ? marks.text->begin : ""));
  DP_TRY(const auto end, find_token(kEndFields, marks.text ? marks.text->end : ""));
  marks.words = {.token = text_of(token),
                 .begin = text_of(begin),
                 .end = text_of(end),
                 .bos = std::string(tokenizer->token_text(tokenizer->bos()))};
  return marks;
}

std::optional<bool> pan_and_scan_of(const ImageMarks& marks, std::optional<bool> in_detail) {
  return marks.rules.family->pans_and_scans ? in_detail : std::nullopt;
}

Result<std::string> expand_images(const ImageMarks& marks, std::string_view text,
                                  std::span<const images::ImageShape> images) {
  if (images.empty()) return std::string(text);
  if (!marks.text || marks.text->mark(marks.words).empty()) {
    return fail(ErrorKind::kUnsupported, "Prompts with pictures of the model type \"%s\" are not known.",
                std::string(marks.rules.family->model_type).c_str());
  }
  const std::string& mark = marks.text->mark(marks.words);
  std::string out;
  size_t count = 0;
  for (size_t at = 0;;) {
    const size_t found = text.find(mark, at);
    out += text.substr(at, found - at);
    if (found == text.npos) break;
    if (count < images.size()) out += marks.text->write(marks.words, marks.rules, images[count]);
    ++count;
    at = found + mark.size();
  }
  if (count == images.size())
    return marks.text->finish ? marks.text->finish(marks.words, std::move(out)) : out;
  return fail(ErrorKind::kInvalidInput,
              "The prompt has %zu places for pictures, and %zu pictures were given; a text must not have the "
              "model's mark for a picture itself.",
              count, images.size());
}

namespace {

Result<void> number_tokens(const ImageMarks& marks, const HeldImages& images, std::vector<uint32_t>& tokens) {
  std::vector<uint32_t> numbers;
  for (const auto& image : images) {
    for (uint32_t i = 0; i < image->tokens(); ++i) numbers.push_back(image->first_token + i);
  }
  size_t count = 0;
  for (uint32_t& token : tokens) {
    if (token != marks.token) continue;
    if (count < numbers.size()) token = numbers[count];
    ++count;
  }
  if (count == numbers.size()) return {};
  return fail(ErrorKind::kInvalidInput, "The prompt has %zu tokens of pictures; the pictures given have %zu.",
              count, numbers.size());
}

}  // namespace

Result<std::vector<uint32_t>> place_images(const ImageMarks& marks, std::span<const uint32_t> tokens,
                                           HeldImages& images, model::ImageNumbers& numbers) {
  std::vector<uint32_t> out(tokens.begin(), tokens.end());
  if (images.empty()) return out;
  DP_CHECK(number_tokens(marks, images, out));
  if (marks.most_prompt == 0) return out;
  if (out.size() > marks.most_prompt) {
    return fail(
        ErrorKind::kUnsupported,
        "A prompt with pictures has %zu tokens, which see each other and need a step that holds them all; "
        "with this chunk (--chunk) allowed are %u.",
        out.size(), marks.most_prompt);
  }
  DP_TRY(auto held, numbers.add_prompt(out));
  std::iota(out.begin(), out.end(), held->first_token);
  images.push_back(std::move(held));
  return out;
}

}  // namespace doppler::engine
