// A body of multipart/form-data (RFC 7578) as its parts: how browsers and OpenAI's clients send files.
// Read next: http_parser.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http_parser.h"

namespace doppler::server {

struct FormPart {
  std::string name;
  std::string filename;      // empty: it is a field, no file
  std::string_view content;  // of the body
};

inline constexpr size_t kMostFormParts = 64;

// `content_type`: the request's field; `body` outlives the parts. Error (kInvalidInput): it is no such form, or a cut
// one.
Result<std::vector<FormPart>> read_form(std::string_view content_type, std::string_view body);

// The value of a key of "a=1&b=2", decoded; no value: the key is not there.
std::optional<std::string> query_value(std::string_view query, std::string_view key);

}  // namespace doppler::server
