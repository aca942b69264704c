// shard_gate.h with threads.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "formats/rdrr/integrity.h"
#include "formats/rdrr/shard_gate.h"
#include "formats/rdrr/verified_stamp_native.h"

namespace doppler::formats {
namespace {

// Shards hashed and not yet asked for: enough to keep the threads busy, little enough that their pages are
// still in memory when the upload comes (512 MiB at the usual shard size).
constexpr size_t kAhead = 8;
// One core hashes about 1.5 GB/s: eight are faster than any disk that a model would be loaded from.
constexpr unsigned kMaxGateThreads = 8;

enum class State : uint8_t { kToDo, kInWork, kGood, kBad };

class ThreadedGate final : public ShardGate {
 public:
  ThreadedGate(ShardGateFiles files, const RdrrManifest& manifest)
      : files_(std::move(files)),
        manifest_(manifest),
        states_(manifest.shards.size(), State::kToDo),
        stamp_(files_.stamp_folder, manifest, files_.identities) {
    for (size_t i = 0; i < states_.size(); ++i) {
      if (stamp_.knows(i)) {
        states_[i] = State::kGood;
      } else {
        ++to_do_;
      }
    }
  }

  ~ThreadedGate() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    stamp_.save();
  }

  Result<> wait(size_t shard) override {
    std::unique_lock lock(mutex_);
    if (threads_.empty() && to_do_ > 1) start_threads();
    if (shard > reached_) {
      reached_ = shard;
      changed_.notify_all();
    }
    if (states_[shard] == State::kToDo) hash(shard, lock);
    changed_.wait(lock, [&] { return states_[shard] != State::kInWork; });
    if (states_[shard] == State::kGood) return {};
    return fail(
        ErrorKind::kInvalidInput,
        "%s/%s is damaged: its SHA-256 is not the manifest's (doppler verify --repair fetches it anew).",
        files_.folder.c_str(), manifest_.shards[shard].file.c_str());
  }

 private:
  void start_threads() {
    const size_t useful = std::min<size_t>(
        {std::max(1u, std::thread::hardware_concurrency()), kMaxGateThreads, states_.size()});
    for (size_t i = 0; i < useful; ++i) threads_.emplace_back([this] { work(); });
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto found = [&] {
        const size_t end = std::min(states_.size(), reached_ + 1 + kAhead);
        while (first_to_do_ < end && states_[first_to_do_] != State::kToDo) ++first_to_do_;
        return first_to_do_ < end;
      };
      changed_.wait(lock, [&] { return stop_ || found(); });
      if (stop_) return;
      hash(first_to_do_, lock);
    }
  }

  // Unlocks while it hashes.
  void hash(size_t shard, std::unique_lock<std::mutex>& lock) {
    states_[shard] = State::kInWork;
    --to_do_;
    lock.unlock();
    const RdrrShard& entry = manifest_.shards[shard];
    const bool good =
        sha256(files_.mapped.subspan(shard * manifest_.shard_bytes, entry.bytes)) == entry.sha256;
    lock.lock();
    states_[shard] = good ? State::kGood : State::kBad;
    if (good) stamp_.note(shard);
    changed_.notify_all();
  }

  const ShardGateFiles files_;
  const RdrrManifest& manifest_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<State> states_;
  VerifiedStamp stamp_;
  size_t to_do_ = 0;        // shards in that state
  size_t first_to_do_ = 0;  // none before this one is: a state never becomes "to do" again
  size_t reached_ = 0;      // the highest shard asked for
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<ShardGate> make_shard_gate(ShardGateFiles files, const RdrrManifest& manifest) {
  return std::make_unique<ThreadedGate>(std::move(files), manifest);
}

}  // namespace doppler::formats
