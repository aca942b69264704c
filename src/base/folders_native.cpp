// The part of folders.h that is the same on every system.
#include <cerrno>

#include "base/folders.h"
#include "base/path_native.h"

namespace doppler {
namespace {

FileKind kind_of(const std::string& path) {
  const auto facts = facts_of(path);
  return facts ? facts->kind : FileKind::kOther;
}

}  // namespace

std::string parent_path(const std::string& path) { return path_text(native_path(path).parent_path()); }
std::string file_name(const std::string& path) { return path_text(native_path(path).filename()); }
std::string file_stem(const std::string& path) { return path_text(native_path(path).stem()); }
std::string normal_path(const std::string& path) { return path_text(native_path(path).lexically_normal()); }
std::string joined_path(const std::string& folder, const std::string& name) {
  return path_text(native_path(folder) / native_path(name));
}

bool is_folder(const std::string& path) { return kind_of(path) == FileKind::kFolder; }
bool is_regular_file(const std::string& path) { return kind_of(path) == FileKind::kRegular; }

std::optional<uint64_t> file_bytes(const std::string& path) {
  const auto facts = facts_of(path);
  if (!facts) return {};
  if (facts->kind == FileKind::kRegular) return facts->bytes;
  errno = facts->kind == FileKind::kFolder ? EISDIR : EOPNOTSUPP;
  return {};
}

bool list_folder(const std::string& folder, std::vector<std::string>& names) {
  return walk_folder(folder, [&](const FoundName& found) {
    names.push_back(found.path);
    return false;
  });
}

}  // namespace doppler
