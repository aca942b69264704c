#include "server/files/private_folder.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>

#include "base/folders.h"
#include "base/text.h"

namespace doppler::server {
namespace {

constexpr const char* kLockName = ".lock";
constexpr const char* kPartSuffix = ".part";

Unexpected failed(const char* what, const std::string& path) {
  return fail(ErrorKind::kIo, "Cannot %s %s: %s.", what, path.c_str(), std::strerror(errno));
}

}  // namespace

Result<std::unique_ptr<PrivateFolder>> PrivateFolder::open(const std::string& given) {
  std::string path = given;
  if (path.empty()) {
    path = make_temporary_folder("doppler-files-");
    if (path.empty()) return failed("make", "a folder for temporary files");
  } else {
    make_folders(parent_path(path));
    const bool is_made = make_private_folder(path);
    if (!is_made && errno == ENOTDIR && is_there(path))
      return fail(ErrorKind::kInvalidInput, "%s is no folder.", path.c_str());
    if (!is_made) return failed("make", path);
    if (!is_private_folder(path)) {
      return fail(ErrorKind::kInvalidInput,
                  "Others can read %s, where clients' files are kept; only this user may read it (chmod "
                  "700).",
                  path.c_str());
    }
  }
  const std::string lock_path = path + "/" + kLockName;
  OpenFile lock =
      OpenFile::open(lock_path, {.writes = true, .makes = true, .readers = FileReaders::kOnlyUser});
  if (!lock) return failed("write to", lock_path);
  if (!lock.lock()) return fail(ErrorKind::kIo, "Another server keeps its files in %s now.", path.c_str());
  return std::unique_ptr<PrivateFolder>(new PrivateFolder(std::move(path), given.empty(), std::move(lock)));
}

PrivateFolder::~PrivateFolder() {
  if (is_temporary_) remove_tree(path_);
}

std::vector<std::string> PrivateFolder::names() const {
  std::vector<std::string> out;
  list_folder(path_, out);
  return out;
}

Result<void> PrivateFolder::write(const std::string& name, std::string_view bytes) const {
  const std::string part = path_of(name) + kPartSuffix;
  OpenMode mode = kToWriteNew;
  mode.readers = FileReaders::kOnlyUser;
  OpenFile file = OpenFile::open(part, mode);
  if (!file) return failed("write to", part);
  if (!file.write(bytes) || !file.flush()) {
    const Unexpected problem = failed("write to", part);
    file.close();
    remove_file(part);
    return problem;
  }
  file.close();
  return rename(name + kPartSuffix, name);
}

Result<void> PrivateFolder::rename(const std::string& from, const std::string& to) const {
  if (!rename_path(path_of(from), path_of(to))) return failed("make", path_of(to));
  return {};
}

void PrivateFolder::remove(const std::string& name) const { remove_file(path_of(name)); }

std::string new_id(const char* prefix) {
  thread_local std::mt19937_64 random{std::random_device()()};
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return format_text("%s%012llx%012llx", prefix, static_cast<unsigned long long>(now.count()),
                     static_cast<unsigned long long>(random() & 0xFFFF'FFFF'FFFF));
}

}  // namespace doppler::server
