// folders.h by std::filesystem, whose paths are the bytes of POSIX.
#include <cerrno>

#include "base/folders.h"
#include "base/path_native.h"

namespace doppler {
namespace {

namespace fs = std::filesystem;

bool is_fine(const std::error_code& error) {
  if (error) errno = error.value();
  return !error;
}

bool walk(const fs::path& folder, const std::string& below,
          const std::function<bool(const FoundName&)>& visit) {
  std::error_code error, untold;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const FileKind kind = it->is_directory(untold)      ? FileKind::kFolder
                          : it->is_regular_file(untold) ? FileKind::kRegular
                                                        : FileKind::kOther;
    const std::string path = below + it->path().filename().string();
    if (!visit({path, kind}) || kind != FileKind::kFolder || it->is_symlink(untold)) continue;
    if (!walk(it->path(), path + "/", visit)) return false;
  }
  return is_fine(error);
}

}  // namespace

fs::path native_path(const std::string& text) { return text; }
std::string path_text(const fs::path& path) { return path.string(); }

bool make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return is_fine(error);
}

bool remove_tree(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  return is_fine(error);
}

bool copy_file(const std::string& from, const std::string& to, bool replaces) {
  std::error_code error;
  fs::copy_file(from, to, replaces ? fs::copy_options::overwrite_existing : fs::copy_options::none, error);
  return is_fine(error);
}

bool link_file(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::create_hard_link(from, to, error);
  return is_fine(error);
}

bool walk_folder(const std::string& folder, const std::function<bool(const FoundName&)>& visit) {
  return walk(folder, "", visit);
}

}  // namespace doppler
