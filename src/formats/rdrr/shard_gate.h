// Who says that a mapped shard may be used: its bytes had the manifest's hash. Threads hash shards ahead of the
// reader, in order, at most a few further than it has come, which also brings them into memory; a shard that is
// asked for before its turn is hashed by the thread that asks. What was found good is remembered in a stamp
// file, keyed by the file's size, times and inode and by the hash, so that the next load hashes nothing.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/rdrr/manifest.h"

namespace doppler::formats {

class ShardGate {
 public:
  virtual ~ShardGate() = default;
  // Blocks until the shard is hashed. Error: it is damaged; names the file.
  virtual Result<> wait(size_t shard) = 0;
};

struct ShardGateFiles {
  std::span<const uint8_t> mapped;      // all shards, end to end
  std::vector<std::string> identities;  // JoinedFiles::identities
  std::string folder;                   // for messages
  std::string stamp_folder;             // empty: nothing is remembered
};
// `manifest` and the mapping must outlive the gate. Null where there are no threads and no hash (WebAssembly).
std::unique_ptr<ShardGate> make_shard_gate(ShardGateFiles files, const RdrrManifest& manifest);

}  // namespace doppler::formats
