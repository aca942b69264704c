#include "store/served_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "store/url.h"

namespace doppler::store {
namespace {

constexpr size_t kMostPathBytes = 2048;

struct ContentType {
  std::string_view ending;
  const char* type;
};
constexpr ContentType kTypes[] = {
    {".json", "application/json"},
    {".jinja", "text/plain; charset=utf-8"},
    {".txt", "text/plain; charset=utf-8"},
    {".md", "text/plain; charset=utf-8"},
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".wasm", "application/wasm"},
    {".svg", "image/svg+xml"},
    {".webmanifest", "application/manifest+json"},
};

const char* type_of(std::string_view path) {
  for (const ContentType& row : kTypes) {
    if (path.ends_with(row.ending)) return row.type;
  }
  return "application/octet-stream";
}

// Hidden files may hold secrets, unfinished ones are no models.
bool may_be_served(std::string_view part) {
  return !part.empty() && part[0] != '.' && !part.ends_with(".part") && !part.ends_with(".journal");
}

// The path without links, if it is inside.
std::optional<std::string> real_path_inside(const std::string& root, const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (!resolved) return {};
  std::string real(resolved);
  std::free(resolved);
  const std::string prefix = root == "/" ? root : root + "/";
  return real.starts_with(prefix) ? std::optional(real.substr(prefix.size())) : std::nullopt;
}

}  // namespace

Result<std::string> served_root(const std::string& folder) {
  char* resolved = ::realpath(folder.c_str(), nullptr);
  if (!resolved) return fail_errno("serve", folder);
  std::string real(resolved);
  std::free(resolved);
  struct stat status{};
  if (::stat(real.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return fail(ErrorKind::kInvalidInput, "%s is no folder.", folder.c_str());
  }
  return real;
}

std::optional<ServedFile> open_served(const std::string& root, std::string_view request_path) {
  const auto decoded = percent_decoded(request_path);
  if (!decoded || decoded->size() > kMostPathBytes || !decoded->starts_with('/')) return {};
  for (const std::string& part : split(std::string_view(*decoded).substr(1), '/')) {
    if (!may_be_served(part)) return {};
  }
  const auto inside = real_path_inside(root, root + *decoded);
  if (!inside) return {};
  // Opens the path part by part without following links, so that no one can insert a link meanwhile.
  auto at = File::open(root, O_RDONLY | O_DIRECTORY);
  const std::vector<std::string> parts = split(*inside, '/');
  for (size_t i = 0; at && i < parts.size(); ++i) {
    if (!may_be_served(parts[i])) return {};
    const bool is_last = i + 1 == parts.size();
    at = File::open_at(*at, parts[i], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | (is_last ? 0 : O_DIRECTORY));
  }
  if (!at) return {};
  struct stat status{};
  if (::fstat(at->number(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  return ServedFile{
      .file = std::move(*at),
      .bytes = static_cast<uint64_t>(status.st_size),
      .etag = format_text("\"%llx-%llx-%llx.%lx\"", static_cast<unsigned long long>(status.st_ino),
                          static_cast<unsigned long long>(status.st_size),
                          static_cast<unsigned long long>(status.st_mtim.tv_sec), status.st_mtim.tv_nsec),
      .last_modified = http_date(status.st_mtim.tv_sec),
      .content_type = type_of(*decoded),
  };
}

Answer answer_for(const ServedFile& file, const Conditions& conditions) {
  if (!conditions.if_none_match.empty()) {
    if (etag_list_names(conditions.if_none_match, file.etag)) return {.status = 304};
  } else if (!conditions.if_modified_since.empty()) {
    const auto since = parse_http_date(trim(conditions.if_modified_since));
    const auto modified = parse_http_date(file.last_modified);
    if (since && modified && *modified <= *since) return {.status = 304};
  }
  if (conditions.range.empty()) return {};
  const std::string_view if_range = trim(conditions.if_range);
  if (!if_range.empty() && if_range != file.etag && if_range != file.last_modified) return {};
  const RangeRequest request = parse_range(conditions.range, file.bytes);
  switch (request.answer) {
    case RangeAnswer::kWhole:
      return {};
    case RangeAnswer::kPart:
      return {.status = 206, .range = request.range};
    case RangeAnswer::kUnsatisfiable:
      return {.status = 416};
  }
  return {};
}

}  // namespace doppler::store
