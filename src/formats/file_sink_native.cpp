// Plain writes (file_sink_native.h).
#include "formats/file_sink_native.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace doppler::formats {

Result<std::unique_ptr<FileSink>> FileSink::create(const std::string& path) {
  const std::string temporary = path + ".part";
  OpenFile file = OpenFile::open(temporary, kToWriteNew);
  if (!file) return fail(ErrorKind::kIo, "Cannot write %s: %s.", temporary.c_str(), std::strerror(errno));
  return std::unique_ptr<FileSink>(new FileSink(path, temporary, std::move(file)));
}

FileSink::~FileSink() {
  if (!file_) return;
  file_.close();
  remove_file(temporary_);
}

Unexpected FileSink::failed() const {
  return fail(ErrorKind::kIo, "Cannot write %s: %s.", path_.c_str(), std::strerror(errno));
}

Result<> FileSink::write(std::span<const uint8_t> bytes) {
  return file_.write(bytes) ? Result<>() : failed();
}

Result<> FileSink::commit() {
  if (!file_.flush()) return failed();
  if (!rename_path(temporary_, path_)) return failed();
  return file_.close() ? Result<>() : failed();
}

}  // namespace doppler::formats
