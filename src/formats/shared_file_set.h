// One FileSet for several checkpoints: the same model on several devices. Each opens its own sources, from any thread
// if those of the set allow it, as native and synthetic ones do.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "formats/source.h"

namespace doppler::formats {

class SharedFileSet final : public FileSet {
 public:
  explicit SharedFileSet(std::shared_ptr<FileSet> files) : files_(std::move(files)) {}

  const std::string& root() const override { return files_->root(); }
  const std::string& main_file() const override { return files_->main_file(); }
  std::vector<std::string> list() const override { return files_->list(); }
  Task<Result<std::unique_ptr<ByteSource>>> open(std::string name) override {
    return files_->open(std::move(name));
  }
  Result<JoinedFiles> map_joined(std::span<const JoinedPart> parts) override {
    return files_->map_joined(parts);
  }

 private:
  const std::shared_ptr<FileSet> files_;
};

}  // namespace doppler::formats
