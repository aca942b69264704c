#include "openai/line_reader.h"

#include <cerrno>
#include <cstring>

namespace doppler::openai {
namespace {

constexpr size_t kBufferBytes = 256 << 10;

}  // namespace

Result<LineReader> LineReader::open(const std::string& path) {
  OpenFile file = OpenFile::open(path);
  if (!file) return fail(ErrorKind::kIo, "Cannot open %s: %s.", path.c_str(), std::strerror(errno));
  const auto facts = file.facts();
  if (!facts || facts->kind != FileKind::kRegular) {
    return fail(ErrorKind::kInvalidInput, "%s is no regular file.", path.c_str());
  }
  return LineReader(std::move(file), path);
}

Result<bool> LineReader::fill() {
  buffer_.resize(kBufferBytes);
  at_ = 0;
  const auto count = file_.read_at({reinterpret_cast<uint8_t*>(buffer_.data()), buffer_.size()}, read_);
  end_ = count.value_or(0);
  if (!count) return fail(ErrorKind::kIo, "Cannot read %s.", path_.c_str());
  read_ += end_;
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
  at_ = end_ = 0;
  number_ = offset_ = read_ = 0;
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
