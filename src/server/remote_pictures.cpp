#include "server/remote_pictures.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/text.h"

namespace doppler::server {
namespace {

bool is_remote(const Json* value) {
  if (!value || !value->is_string()) return false;
  const std::string start = ascii_lower(std::string_view(value->text()).substr(0, 8));
  return start.starts_with("http://") || start.starts_with("https://");
}

class Fetcher {
 public:
  explicit Fetcher(const FetchPicture& fetch) : fetch_(fetch) {}

  Result<void> visit(Json& value) {
    for (Json& item : value) DP_CHECK(visit(item));
    if (!value.is_object()) return {};
    if (Json* const given = member(value, "image_url")) {
      Json* const inner = member(*given, "url");
      DP_CHECK(replace(inner ? *inner : *given));
    }
    Json* const source = member(value, "source");
    if (source && is_remote(member(*source, "url"))) {
      DP_TRY(const std::string data, fetch((*source)["url"].text()));
      *source = {{"type", "base64"}, {"media_type", "image"}, {"data", data}};
    }
    for (const Json::Member& each : value.items()) DP_CHECK(visit(const_cast<Json&>(each.value)));
    return {};
  }
  size_t count() const { return count_; }

 private:
  static Json* member(Json& object, std::string_view key) {
    return const_cast<Json*>(object.find_member(key));
  }

  Result<void> replace(Json& url) {
    if (!is_remote(&url)) return {};
    DP_TRY(const std::string data, fetch(url.text()));
    url = "data:image;base64," + data;
    return {};
  }

  // In base64.
  Result<std::string> fetch(const std::string& url) {
    if (++count_ > kMostRemotePictures) {
      return fail(ErrorKind::kInvalidInput, "The request has more than %zu addresses of pictures.",
                  kMostRemotePictures);
    }
    auto bytes = fetch_(url);
    if (!bytes)
      return fail(ErrorKind::kInvalidInput, "A picture cannot be fetched: %s",
                  bytes.error().sentence().c_str());
    bytes_ += bytes->size();
    if (bytes_ > kMostRemoteBytes) {
      return fail(ErrorKind::kInvalidInput, "The pictures that the request names have more than %s.",
                  format_bytes(kMostRemoteBytes).c_str());
    }
    return base64({reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size()});
  }

  const FetchPicture& fetch_;
  size_t count_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

bool may_have_remote_pictures(const HttpRequest& request) {
  return request.method == "POST" && ascii_lower(request.body).find("\"http") != std::string::npos;
}

Result<std::string> with_fetched_pictures(const std::string& body, const FetchPicture& fetch) {
  auto parsed = parse_json(body, "the body");
  if (!parsed || !parsed->is_object()) return body;  // the endpoint says what is wrong with it
  Fetcher fetcher(fetch);
  DP_CHECK(fetcher.visit(*parsed));
  return fetcher.count() == 0 ? body : to_text(*parsed);
}

}  // namespace doppler::server
