// The journal beside an unfinished output: a line that names the conversion (a hash), then one line each time more
// tensors are safely on the disk. It is locked while a process writes. Not part of the WebAssembly build.
#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "base/result.h"
#include "base/sha256.h"

namespace doppler::formats {

class Journal {
 public:
  // Error: another process holds the lock.
  static Result<std::unique_ptr<Journal>> open(const std::string& path, const Sha256& conversion);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Tensors that were on the disk when it was opened; 0 also when the journal was of another conversion.
  size_t done() const { return done_; }
  bool was_of_another() const { return was_of_another_; }
  Result<> add(size_t tensors_done);  // reaches the disk
  Result<> begin_anew();              // forgets everything that is done
  void remove();

 private:
  Journal(std::string path, OpenFile file, const Sha256& conversion);
  Result<> append(const std::string& line);

  std::string path_;
  OpenFile file_;
  std::string title_;
  size_t done_ = 0;
  bool was_of_another_ = false;
};

}  // namespace doppler::formats
