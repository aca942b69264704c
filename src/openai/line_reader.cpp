#include "openai/line_reader.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace doppler::openai {
namespace {

constexpr size_t kBufferBytes = 256 << 10;

}  // namespace

Result<LineReader> LineReader::open(const std::string& path) {
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) return fail(ErrorKind::kIo, "Cannot open %s: %s.", path.c_str(), std::strerror(errno));
  struct stat facts{};
  if (::fstat(::fileno(file.get()), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return fail(ErrorKind::kInvalidInput, "%s is no regular file.", path.c_str());
  }
  return LineReader(std::move(file), path);
}

Result<bool> LineReader::fill() {
  buffer_.resize(kBufferBytes);
  at_ = 0;
  end_ = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
  if (std::ferror(file_.get()) != 0) return fail(ErrorKind::kIo, "Cannot read %s.", path_.c_str());
  return end_ != 0;
}

Result<std::optional<LineReader::Line>> LineReader::next() {
  Line line{.number = number_ + 1, .begin = offset_, .text = {}, .is_whole = false};
  bool is_blank = true;
  while (true) {
    if (at_ == end_) {
      DP_TRY(const bool more, fill());
      if (!more) break;
    }
    const char* from = buffer_.data() + at_;
    const void* feed = std::memchr(from, '\n', end_ - at_);
    line.is_whole = feed != nullptr;
    const size_t count = feed ? static_cast<size_t>(static_cast<const char*>(feed) - from) : end_ - at_;
    const std::string_view piece(from, count);
    is_blank = is_blank && trim(piece).empty();
    line.is_too_long = line.is_too_long || line.text.size() + count > kMaxLineBytes;
    if (line.is_too_long) {
      line.text = {};
    } else {
      line.text += piece;
    }
    at_ += count + (feed ? 1 : 0);
    offset_ += count + (feed ? 1 : 0);
    if (!feed) continue;
    ++number_;
    if (!is_blank) return std::optional(std::move(line));
    line = {.number = number_ + 1, .begin = offset_, .text = {}, .is_whole = false};
    is_blank = true;
  }
  if (is_blank) return std::optional<Line>();
  ++number_;
  return std::optional(std::move(line));
}

Result<void> LineReader::rewind() {
  if (std::fseek(file_.get(), 0, SEEK_SET) != 0)
    return fail(ErrorKind::kIo, "Cannot read %s: %s.", path_.c_str(), std::strerror(errno));
  at_ = end_ = 0;
  number_ = offset_ = 0;
  return {};
}

Result<uint64_t> count_lines(LineReader& reader) {
  uint64_t lines = 0;
  while (true) {
    DP_TRY(const auto line, reader.next());
    if (!line) break;
    ++lines;
  }
  DP_CHECK(reader.rewind());
  return lines;
}

}  // namespace doppler::openai
