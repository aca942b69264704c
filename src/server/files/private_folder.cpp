#include "server/files/private_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/text.h"

namespace doppler::server {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockName = ".lock";
constexpr const char* kPartSuffix = ".part";

Unexpected failed(const char* what, const std::string& path) {
  return fail(ErrorKind::kIo, "Cannot %s %s: %s.", what, path.c_str(), std::strerror(errno));
}

}  // namespace

Result<std::unique_ptr<PrivateFolder>> PrivateFolder::open(const std::string& given) {
  std::string path = given;
  std::error_code error;
  if (path.empty()) {
    path = (fs::temp_directory_path(error) / "doppler-files-XXXXXX").string();
    if (error || !::mkdtemp(path.data())) return failed("make", path);
  } else {
    fs::create_directories(fs::path(path).parent_path(), error);
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return failed("make", path);
    struct stat facts{};
    if (::stat(path.c_str(), &facts) != 0) return failed("open", path);
    if (!S_ISDIR(facts.st_mode)) return fail(ErrorKind::kInvalidInput, "%s is no folder.", path.c_str());
    if (facts.st_uid != ::geteuid() || (facts.st_mode & 077) != 0) {
      return fail(ErrorKind::kInvalidInput,
                  "Others can read %s, where clients' files are kept; only this user may read it (chmod "
                  "700).",
                  path.c_str());
    }
  }
  const std::string lock_path = path + "/" + kLockName;
  const int lock = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return failed("write to", lock_path);
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock);
    return fail(ErrorKind::kIo, "Another server keeps its files in %s now.", path.c_str());
  }
  return std::unique_ptr<PrivateFolder>(new PrivateFolder(std::move(path), given.empty(), lock));
}

PrivateFolder::~PrivateFolder() {
  if (is_temporary_) {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  ::close(lock_);
}

std::vector<std::string> PrivateFolder::names() const {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error))
    out.push_back(at->path().filename().string());
  return out;
}

Result<void> PrivateFolder::write(const std::string& name, std::string_view bytes) const {
  const std::string part = path_of(name) + kPartSuffix;
  const int file = ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return failed("write to", part);
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  const bool is_written = bytes.empty() && ::fsync(file) == 0;
  const Unexpected problem = failed("write to", part);
  ::close(file);
  if (!is_written) {
    ::unlink(part.c_str());
    return problem;
  }
  return rename(name + kPartSuffix, name);
}

Result<void> PrivateFolder::rename(const std::string& from, const std::string& to) const {
  if (::rename(path_of(from).c_str(), path_of(to).c_str()) != 0) return failed("make", path_of(to));
  return {};
}

void PrivateFolder::remove(const std::string& name) const { ::unlink(path_of(name).c_str()); }

std::string new_id(const char* prefix) {
  thread_local std::mt19937_64 random{std::random_device()()};
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return format_text("%s%012llx%012llx", prefix, static_cast<unsigned long long>(now.count()),
                     static_cast<unsigned long long>(random() & 0xFFFF'FFFF'FFFF));
}

}  // namespace doppler::server
