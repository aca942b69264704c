// Pictures in messages: parts of OpenAI's APIs that carry a file as a data URL. Other addresses are refused.
#pragma once

#include <string>

#include "base/json.h"
#include "base/result.h"

namespace doppler::openai {

// "image_url" of chats and "input_image" of responses.
bool is_image_part(const Json& part);
// The bytes of its file. Errors: another address than a data URL in base64.
Result<std::string> read_image_part(const Json& part);
// Such a part, of a file in base64.
Json image_part(const std::string& media_type, const std::string& base64);

}  // namespace doppler::openai
