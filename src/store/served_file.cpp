#include "store/served_file.h"

#include <algorithm>

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
  return is_one_name(part) && part[0] != '.' && !part.ends_with(".part") && !part.ends_with(".journal");
}

// The path without links, if it is inside.
std::optional<std::string> real_path_inside(const std::string& root, const std::string& path) {
  const auto real = real_path(path);
  const std::string prefix = root.ends_with('/') ? root : root + "/";
  if (!real || !real->starts_with(prefix)) return {};
  return real->substr(prefix.size());
}

}  // namespace

Result<std::string> served_root(const std::string& folder) {
  auto real = real_path(folder);
  if (!real) return fail_errno("serve", folder);
  const auto facts = facts_of(*real);
  if (!facts || facts->kind != FileKind::kFolder) {
    return fail(ErrorKind::kInvalidInput, "%s is no folder.", folder.c_str());
  }
  return std::move(*real);
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
  auto at = File::open(root, kToReadFolder);
  const std::vector<std::string> parts = split(*inside, '/');
  for (size_t i = 0; at && i < parts.size(); ++i) {
    if (!may_be_served(parts[i])) return {};
    const bool is_last = i + 1 == parts.size();
    at = File::open_at(*at, parts[i], {.follows_links = false, .is_folder = !is_last, .waits = false});
  }
  if (!at) return {};
  const auto facts = at->facts();
  if (!facts || facts->kind != FileKind::kRegular) return {};
  constexpr int64_t kSecond = 1'000'000'000;
  return ServedFile{
      .file = std::move(*at),
      .bytes = facts->bytes,
      .etag = format_text("\"%llx-%llx-%llx.%llx\"", static_cast<unsigned long long>(facts->number),
                          static_cast<unsigned long long>(facts->bytes),
                          static_cast<unsigned long long>(facts->modified_ns / kSecond),
                          static_cast<unsigned long long>(facts->modified_ns % kSecond)),
      .last_modified = http_date(facts->modified_ns / kSecond),
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
