// Addresses of pictures in the bodies of requests: the server fetches them before an endpoint reads the body, if its
// operator named their hosts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "server/http_parser.h"

namespace doppler::server {

// The bytes of the file at an address; any thread.
using FetchPicture = std::function<Result<std::string>(const std::string& url)>;

// A cheap look: false if the body has no address of http or https.
bool may_have_remote_pictures(const HttpRequest& request);

// The body with the pictures' bytes in base64 in place of their addresses: "image_url" of OpenAI's APIs, and sources of
// the type "url" of Anthropic's. A body that is no JSON object stays the same.
// Errors: too many pictures or bytes, and those of `fetch`.
Result<std::string> with_fetched_pictures(const std::string& body, const FetchPicture& fetch);
inline constexpr size_t kMostRemotePictures = 16;
inline constexpr uint64_t kMostRemoteBytes = 64 << 20;  // of all pictures of a request

}  // namespace doppler::server
