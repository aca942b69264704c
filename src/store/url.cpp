#include "store/url.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "store/curl_library.h"

namespace doppler::store {
namespace {

constexpr size_t kUrlMostNameBytes = 200;  // room for ".journal" under the 255 of common file systems
constexpr size_t kMostUrlBytes = 16384;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

bool looks_like_url(std::string_view text) {
  const std::string start = ascii_lower(text.substr(0, 8));
  return start.starts_with("http://") || start.starts_with("https://");
}

Result<Url> parse_url(std::string_view text) {
  const auto refuse = [&](const char* why) {
    return fail(ErrorKind::kInvalidInput, "\"%s\" is no address of a file: %s.", shown_url(text).c_str(),
                why);
  };
  if (!looks_like_url(text)) return refuse("it must begin with https:// or http://");
  if (text.size() > kMostUrlBytes) return refuse("it is longer than 16384 bytes");
  if (std::ranges::any_of(text, [](unsigned char c) { return c <= ' ' || c == 0x7f || c == '\\'; })) {
    return refuse("it has a space, control character or backslash");
  }
  Url url;
  const size_t scheme_end = text.find("://");
  url.scheme = ascii_lower(text.substr(0, scheme_end));
  std::string_view rest = text.substr(scheme_end + 3);
  rest = rest.substr(0, rest.find_first_of("?#"));
  const size_t slash = rest.find('/');
  url.host = ascii_lower(rest.substr(0, slash));
  if (const size_t at = url.host.rfind('@'); at != std::string::npos) url.host.erase(0, at + 1);
  if (url.host.empty()) return refuse("it names no host");
  url.path = slash == std::string_view::npos ? "/" : std::string(rest.substr(slash));
  return url;
}

Result<std::string> follow(const std::string& base, std::string_view location) {
  DP_TRY(const CurlLibrary* curl, CurlLibrary::load());
  const std::string from = shown_url(base);
  CURLU* handle = curl->url();
  if (!handle) return fail(ErrorKind::kOutOfMemory, "There is no memory for an address.");
  char* joined = nullptr;
  const bool ok =
      curl->url_set(handle, CURLUPART_URL, base.c_str(), 0) == CURLUE_OK &&
      curl->url_set(handle, CURLUPART_URL, std::string(location).c_str(), CURLU_URLENCODE) == CURLUE_OK &&
      curl->url_get(handle, CURLUPART_URL, &joined, 0) == CURLUE_OK;
  const std::string target = ok ? joined : "";
  if (joined) curl->free(joined);
  curl->url_cleanup(handle);
  if (!ok || !looks_like_url(target)) {
    return fail(ErrorKind::kIo, "%s redirects to \"%s\", which is no http or https address.", from.c_str(),
                printable(location).c_str());
  }
  DP_TRY(const Url source, parse_url(base));
  DP_TRY(const Url destination, parse_url(target));
  if (source.scheme == "https" && destination.scheme == "http") {
    return fail(ErrorKind::kIo,
                "%s redirects from https to http (%s); that is refused, since anyone on the way "
                "could change the file.",
                from.c_str(), shown_url(target).c_str());
  }
  return target;
}

std::string shown_url(std::string_view url) {
  std::string_view rest = url.substr(0, url.find_first_of("?#"));
  std::string out;
  if (const size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    out = rest.substr(0, scheme + 3);
    rest.remove_prefix(scheme + 3);
    const size_t host_end = std::min(rest.find('/'), rest.size());
    if (const size_t at = rest.substr(0, host_end).rfind('@'); at != std::string_view::npos) {
      rest.remove_prefix(at + 1);
    }
  }
  return printable(out + std::string(rest), 300);
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0 || high * 16 + low == 0) return {};
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::string percent_encoded(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(byte) || std::string_view("-._~/").find(c) != std::string_view::npos;
    out += plain && byte < 0x80 ? std::string(1, c) : format_text("%%%02X", byte);
  }
  return out;
}

bool is_safe_file_name(std::string_view name) {
  if (name.empty() || name.size() > kUrlMostNameBytes || name.front() == '.' || name.front() == '-')
    return false;
  if (name.back() == '.' || name.back() == ' ') return false;
  constexpr std::string_view kRefused = "/\\:*?\"<>|";
  return std::ranges::none_of(name, [&](unsigned char c) {
    return c < ' ' || c == 0x7f || kRefused.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool is_safe_stored_name(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return is_safe_file_name(name);
  const std::string_view folder = name.substr(0, slash);
  return is_safe_file_name(folder) && is_safe_file_name(name.substr(slash + 1));
}

Result<std::string> file_name_of(const Url& url) {
  const auto name = percent_decoded(url.path.substr(url.path.rfind('/') + 1));
  if (!name || !is_safe_file_name(*name)) {
    return fail(ErrorKind::kInvalidInput,
                "The address %s%s ends in no usable file name (\"%s\"); name the file with --name.",
                url.origin().c_str(), printable(url.path, 300).c_str(), printable(name.value_or("")).c_str());
  }
  return *name;
}

}  // namespace doppler::store
