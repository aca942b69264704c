// Shared by the tests of formats/: reading files, running tasks that never wait, and a FileSet in memory that
// is not mapped, as in a browser.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "formats/byte_reader.h"
#include "formats/checkpoint.h"
#include "formats/source.h"

namespace doppler::formats {

inline std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream.good()) << path;
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// The value, or a test failure and abort with the message.
template <class T>
T must(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().message();
    std::abort();
  }
  return std::move(*result);
}

// For tasks over sources that answer at once.
template <class T>
T run_now(Task<T> task) {
  task.start();
  EXPECT_TRUE(task.done());
  return task.take();
}

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string name, std::vector<uint8_t> bytes, uint64_t* bytes_read)
      : name_(std::move(name)), bytes_(std::move(bytes)), bytes_read_(bytes_read) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_.size(); }
  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    *bytes_read_ += count;
    const auto begin = bytes_.begin() + static_cast<ptrdiff_t>(offset);
    co_return std::vector<uint8_t>(begin, begin + static_cast<ptrdiff_t>(count));
  }

 private:
  std::string name_;
  std::vector<uint8_t> bytes_;
  uint64_t* bytes_read_;
};

class MemoryFileSet final : public FileSet {
 public:
  using Files = std::map<std::string, std::vector<uint8_t>>;
  MemoryFileSet(Files files, std::string main_file, uint64_t* bytes_read)
      : files_(std::move(files)), main_file_(std::move(main_file)), bytes_read_(bytes_read) {}
  const std::string& root() const override { return root_; }
  const std::string& main_file() const override { return main_file_; }
  std::vector<std::string> list() const override {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : files_) names.push_back(name);
    return names;
  }
  Task<Result<std::unique_ptr<ByteSource>>> open(std::string name) override {
    const auto it = files_.find(name);
    if (it == files_.end()) co_return std::unique_ptr<ByteSource>();
    co_return std::unique_ptr<ByteSource>(std::make_unique<MemorySource>(name, it->second, bytes_read_));
  }

 private:
  std::string root_ = "model";
  Files files_;
  std::string main_file_;
  uint64_t* bytes_read_;
};

inline std::vector<uint8_t> bytes_of_text(std::string_view text) { return {text.begin(), text.end()}; }

// `bytes_read`, unless null, grows by what was read.
inline Result<std::unique_ptr<Checkpoint>> open_in_memory(MemoryFileSet::Files files,
                                                          std::string main_file = "",
                                                          uint64_t* bytes_read = nullptr) {
  static uint64_t ignored = 0;
  auto set = std::make_unique<MemoryFileSet>(std::move(files), std::move(main_file),
                                             bytes_read ? bytes_read : &ignored);
  return run_now(open_checkpoint(std::move(set)));
}

// The sentence with which files are no checkpoint; empty: they are one.
inline std::string checkpoint_refusal(MemoryFileSet::Files files, std::string main_file = "") {
  const auto opened = open_in_memory(std::move(files), std::move(main_file));
  return opened ? "" : opened.error().sentence();
}

}  // namespace doppler::formats
