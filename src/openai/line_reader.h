// Lines of a file of any length, one at a time: memory for one line and a buffer, however long the file is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace doppler::openai {

// No request is longer: a context of a million tokens is 4 MiB of text, and escapes make at most six bytes of one.
inline constexpr size_t kMaxLineBytes = 64u << 20;

class LineReader {
 public:
  struct Line {
    uint64_t number = 0;       // from 1; empty lines count too, but are not given
    uint64_t begin = 0;        // its first byte's place in the file
    std::string text;          // without its line feed
    bool is_whole = true;      // it ends with a line feed
    bool is_too_long = false;  // more than kMaxLineBytes; `text` is empty
  };

  // Errors: it cannot be opened, or is no regular file.
  static Result<LineReader> open(const std::string& path);
  // No value: the file is at its end.
  Result<std::optional<Line>> next();
  Result<void> rewind();

 private:
  LineReader(OpenFile file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Result<bool> fill();

  OpenFile file_;
  std::string path_;
  std::vector<char> buffer_;
  size_t at_ = 0, end_ = 0;  // what is left in the buffer
  uint64_t read_ = 0;        // bytes of the file so far
  uint64_t number_ = 0, offset_ = 0;
};

// Lines that are not empty; the reader goes back to the beginning.
Result<uint64_t> count_lines(LineReader& reader);

}  // namespace doppler::openai
