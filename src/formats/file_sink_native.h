// A ByteSink that writes a file: under a temporary name beside it until commit(), so that a failure leaves
// nothing half-written. Not part of the WebAssembly build.
#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "formats/sink.h"

namespace doppler::formats {

class FileSink final : public ByteSink {
 public:
  static Result<std::unique_ptr<FileSink>> create(const std::string& path);
  ~FileSink() override;  // without commit(): removes the temporary file
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;

  Result<> write(std::span<const uint8_t> bytes) override;
  Result<> commit();  // flushed to the disk and renamed

 private:
  FileSink(std::string path, std::string temporary, OpenFile file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {}
  Unexpected failed() const;  // for the reason that errno has

  std::string path_, temporary_;
  OpenFile file_;  // none once committed
};

}  // namespace doppler::formats
