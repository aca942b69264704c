// Fuzz target: requests from strangers. However the bytes are cut, the same requests come out, and their contents are
// within the limits. A body is also read as a form.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "server/http_parser.h"
#include "server/multipart.h"

using namespace doppler::server;

namespace {

constexpr HttpLimits kLimits{.head_bytes = 512, .body_bytes = 256, .fields = 8};

std::vector<std::string> requests_of(std::string_view bytes, size_t piece) {
  HttpParser parser(kLimits);
  std::vector<std::string> out;
  while (!bytes.empty()) {
    const size_t taken = parser.push(bytes.substr(0, piece));
    if (taken > bytes.size()) std::abort();
    bytes.remove_prefix(taken);
    if (parser.state() == HttpParser::State::kRefused) {
      out.push_back(parser.refusal().sentence);
      break;
    }
    if (parser.state() != HttpParser::State::kDone) continue;
    const HttpRequest request = parser.take();
    if (request.body.size() > kLimits.body_bytes || request.fields.size() > kLimits.fields) std::abort();
    if (const auto form = read_form(request.field("content-type"), request.body)) {
      for (const FormPart& part : *form) {
        if (part.content.size() > request.body.size()) std::abort();
      }
    }
    out.push_back(request.method + " " + request.path + "?" + request.query + "\n" + request.body);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (requests_of(bytes, bytes.size()) != requests_of(bytes, 1)) std::abort();
  return 0;
}
