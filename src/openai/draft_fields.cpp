#include "openai/draft_fields.h"

#include "base/json.h"
#include "openai/generate_fields.h"

namespace doppler::openai {
namespace {

constexpr int64_t kMostRows = 8;

Error wrong_prediction(const Json& given) {
  return fail(ErrorKind::kInvalidInput,
              "Field \"prediction\" is %s; allowed is {\"type\": \"content\", \"content\": a text, or a list "
              "of "
              "{\"type\": \"text\", \"text\": a text}}.",
              printable(to_text(given)).c_str())
      .error();
}

Result<std::string> text_of(const Json& content, const Json& prediction) {
  if (content.is_string()) return content.text();
  if (!content.is_array()) return forward(wrong_prediction(prediction));
  std::string out;
  for (const Json& part : content) {
    const Json* const text = part.is_object() ? find(part, "text") : nullptr;
    if (!text || !text->is_string()) return forward(wrong_prediction(prediction));
    out += text->text();
  }
  return out;
}

}  // namespace

Result<void> read_draft(const Json& body, GenerateOptions* options) {
  DP_CHECK(read_count(body, "draft_rows", 0, kMostRows, &options->draft_rows));
  if (const Json* const draft = find(body, "draft"); draft && !draft->is_null()) {
    if (!draft->is_string()) {
      return fail(ErrorKind::kInvalidInput, "Field \"draft\" is %s; allowed is a drafter's name.",
                  printable(to_text(*draft)).c_str());
    }
    options->draft = draft->text();
  }
  const Json* const prediction = find(body, "prediction");
  if (!prediction || prediction->is_null()) return {};
  const Json* const content = prediction->is_object() ? find(*prediction, "content") : nullptr;
  if (!content) return forward(wrong_prediction(*prediction));
  DP_TRY(options->prediction, text_of(*content, *prediction));
  return {};
}

}  // namespace doppler::openai
