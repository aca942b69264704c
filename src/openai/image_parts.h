// Pictures in messages: parts of OpenAI's APIs that carry a file as a data URL. Other addresses are refused.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace doppler::openai {

struct Picture {
  std::string file;               // its bytes
  std::optional<bool> in_detail;  // "detail": true for "high", false for "low"
};

// "image_url" of chats and "input_image" of responses.
bool is_image_part(const Json& part);
// Errors: another address than a data URL in base64.
Result<Picture> read_image_part(const Json& part);
// Such a part, of a file in base64.
Json image_part(const std::string& media_type, const std::string& base64);

}  // namespace doppler::openai
