// SHA-256 of a file that is still being written: a thread reads what the download has written, so that the hash is
// ready when the last byte is. It hashes bytes as the disk gives them back, which also checks what was written earlier.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/sha256.h"
#include "store/files.h"

namespace doppler::store {

class FollowingHash {
 public:
  explicit FollowingHash(const File& file);  // which outlives this
  ~FollowingHash();                          // stops without a result
  FollowingHash(const FollowingHash&) = delete;
  FollowingHash& operator=(const FollowingHash&) = delete;

  void advance(uint64_t written);  // all bytes before are in the file
  // Waits until `bytes` are hashed. Once.
  Result<Sha256> finish(uint64_t bytes);

 private:
  void run();
  const File& file_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t written_ = 0;
  bool finishing_ = false, stopping_ = false;
  Result<Sha256> result_ = Sha256{};
  std::thread thread_;
};

}  // namespace doppler::store
