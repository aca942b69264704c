#include "store/following_hash.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace doppler::store {
namespace {
constexpr uint64_t kReadBytes = 1 << 20;
}  // namespace

FollowingHash::FollowingHash(const File& file) : file_(file), thread_([this] { run(); }) {}

FollowingHash::~FollowingHash() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void FollowingHash::advance(uint64_t written) {
  {
    const std::lock_guard lock(mutex_);
    written_ = std::max(written_, written);
  }
  changed_.notify_one();
}

Result<Sha256> FollowingHash::finish(uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    written_ = bytes;
    finishing_ = true;
  }
  changed_.notify_one();
  thread_.join();
  return result_;
}

void FollowingHash::run() {
  Sha256Hasher hasher;
  std::vector<uint8_t> buffer(kReadBytes);
  uint64_t hashed = 0;
  for (;;) {
    uint64_t end = 0;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || finishing_ || written_ >= hashed + kReadBytes; });
      if (stopping_) return;
      if (finishing_ && hashed == written_) break;
      end = std::min(written_, hashed + kReadBytes);
    }
    const auto count = file_.read_at(std::span(buffer).first(end - hashed), hashed);
    if (!count || *count != end - hashed) {
      result_ = count ? fail(ErrorKind::kIo, "%s became shorter while it was read.", file_.path().c_str())
                      : forward(count.error());
      return;
    }
    hasher.update(std::span(buffer).first(*count));
    hashed = end;
  }
  result_ = hasher.finish();
}

}  // namespace doppler::store
