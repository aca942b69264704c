#include "openai/image_parts.h"

#include "base/base64.h"
#include "base/text.h"

namespace doppler::openai {
namespace {

constexpr std::string_view kData = "data:", kBase64 = ";base64,";
constexpr size_t kShown = 40;  // of an address in a message

std::optional<bool> read_detail(const Json* given) {
  if (given && *given == "high") return true;
  if (given && *given == "low") return false;
  return std::nullopt;
}

}  // namespace

bool is_image_part(const Json& part) {
  const Json* type = find(part, "type");
  return type && (*type == "image_url" || *type == "input_image");
}

Result<Picture> read_image_part(const Json& part) {
  const Json* given = find(part, "image_url");
  const Json* inner = given ? find(*given, "url") : nullptr;
  const Json* detail = find(inner ? *given : part, "detail");
  if (inner) given = inner;
  if (!given || !given->is_string()) {
    return fail(ErrorKind::kInvalidInput,
                "Field \"messages.content\" has a part with a picture, but no \"image_url\" in it.");
  }
  const std::string_view url = given->text();
  const size_t comma = url.find(kBase64);
  if (!url.starts_with(kData) || comma == url.npos) {
    return fail(
        ErrorKind::kUnsupported,
        "Field \"messages.content\" has a picture at \"%s\"; allowed are data URLs in base64 "
        "(data:image/png;base64,...), and addresses at hosts that the server allows (--allow-image-host).",
        printable(std::string(url.substr(0, kShown))).c_str());
  }
  std::optional<std::string> bytes = from_base64(url.substr(comma + kBase64.size()));
  if (!bytes || bytes->empty()) {
    return fail(ErrorKind::kInvalidInput,
                "Field \"messages.content\" has a picture whose data URL is not base64.");
  }
  return Picture{.file = std::move(*bytes), .in_detail = read_detail(detail)};
}

Json image_part(const std::string& media_type, const std::string& base64) {
  return {{"type", "image_url"}, {"image_url", {{"url", "data:" + media_type + ";base64," + base64}}}};
}

}  // namespace doppler::openai
