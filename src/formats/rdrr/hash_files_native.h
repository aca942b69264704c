// SHA-256 of many files at once: each thread takes the next file and reads it once, front to back, in pieces of
// 1 MiB. Not part of the WebAssembly build.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace doppler::formats {

struct FileToHash {
  std::string path;
  uint64_t bytes;  // expected: a file of another size is an error and is not read
};

// Bytes hashed so far, of all files; called from one thread at a time.
using HashProgress = std::function<void(uint64_t bytes)>;

// In the order of `files`. Errors: a file is missing, of another size, unreadable. threads 0: one a core.
std::vector<Result<Sha256>> hash_files(std::span<const FileToHash> files, unsigned threads,
                                       const HashProgress& progress);

}  // namespace doppler::formats
