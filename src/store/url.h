// Addresses: taking them apart, following a Location, showing one without its secrets, and the file names that
// strangers put into them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace doppler::store {

struct Url {
  std::string scheme;  // "http" or "https"
  std::string host;    // as given: with the port, without user and password
  std::string path;    // "/a/b.gguf", still percent-encoded; "/" at least
  std::string origin() const { return scheme + "://" + host; }
};

bool looks_like_url(std::string_view text);  // "http://...", "https://...", any letter case
// Error: another scheme, no host, characters that no address has.
Result<Url> parse_url(std::string_view text);

// The address that a Location header names, seen from `base`. Errors: it is none, another scheme than http and
// https, from https down to http.
Result<std::string> follow(const std::string& base, std::string_view location);

// Without user, password, query and fragment: signed addresses carry access in their query.
std::string shown_url(std::string_view url);

std::optional<std::string> percent_decoded(std::string_view text);  // nothing: broken escapes or a NUL
std::string percent_encoded(std::string_view path);                 // keeps letters, digits and -._~/

// A name that may become a file's: no separators, no control characters, no leading dot or dash, valid in any
// file system, at most 200 bytes.
bool is_safe_file_name(std::string_view name);
// Such a name, or one in a folder of such a name: "1_Pooling/config.json".
bool is_safe_stored_name(std::string_view name);
// The last part of the address, decoded. Error: it is no safe file name.
Result<std::string> file_name_of(const Url& url);

}  // namespace doppler::store
