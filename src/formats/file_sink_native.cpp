// Plain POSIX writes (file_sink_native.h).
#include "formats/file_sink_native.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace doppler::formats {

Result<std::unique_ptr<FileSink>> FileSink::create(const std::string& path) {
  const std::string temporary = path + ".part";
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return fail(ErrorKind::kIo, "Cannot write %s: %s.", temporary.c_str(), std::strerror(errno));
  return std::unique_ptr<FileSink>(new FileSink(path, temporary, fd));
}

FileSink::~FileSink() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

Unexpected FileSink::failed(int error) const {
  return fail(ErrorKind::kIo, "Cannot write %s: %s.", path_.c_str(), std::strerror(error));
}

Result<> FileSink::write(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed(written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Result<> FileSink::commit() {
  if (::fsync(fd_) != 0) return failed(errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return failed(errno);
  if (::close(std::exchange(fd_, -1)) != 0) return failed(errno);
  return {};
}

}  // namespace doppler::formats
