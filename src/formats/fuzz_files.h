// Bytes in memory as the files of a model, for fuzz targets.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/source.h"

namespace doppler::formats {

class FuzzBytes final : public ByteSource {
 public:
  explicit FuzzBytes(std::vector<uint8_t> bytes) : bytes_(std::move(bytes)) {}
  const std::string& name() const override { return name_; }
  uint64_t size() const override { return bytes_.size(); }
  Task<Result<std::vector<uint8_t>>> read(uint64_t offset, uint64_t count) override {
    DP_CO_CHECK(check_range(*this, offset, count));
    const auto begin = bytes_.begin() + static_cast<ptrdiff_t>(offset);
    co_return std::vector<uint8_t>(begin, begin + static_cast<ptrdiff_t>(count));
  }

 private:
  std::string name_ = "fuzz";
  std::vector<uint8_t> bytes_;
};

class FuzzFiles final : public FileSet {
 public:
  // main: the file that is named, or empty for a folder.
  FuzzFiles(std::string main, std::map<std::string, std::vector<uint8_t>> files)
      : main_(std::move(main)), files_(std::move(files)) {}
  const std::string& root() const override { return root_; }
  const std::string& main_file() const override { return main_; }
  Task<Result<std::unique_ptr<ByteSource>>> open(std::string name) override {
    const auto found = files_.find(name);
    if (found == files_.end()) co_return std::unique_ptr<ByteSource>();
    co_return std::unique_ptr<ByteSource>(std::make_unique<FuzzBytes>(found->second));
  }

 private:
  std::string root_ = "fuzz", main_;
  std::map<std::string, std::vector<uint8_t>> files_;
};

}  // namespace doppler::formats
