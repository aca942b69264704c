// Decides whether a mapped shard may be used: its bytes had the manifest's hash. Threads hash shards in order, at most
// a few ahead of the reader, which also brings them into memory. A shard that the reader needs before its turn is
// hashed by the reader's thread. A stamp file remembers good shards, keyed by the file's size, times and inode and by
// the hash, so that the next load hashes nothing.
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
  std::string stamp_folder;             // empty: no stamps are kept
};
// `manifest` and the mapping must outlive the gate. Null on hosts without threads and hash (WebAssembly).
std::unique_ptr<ShardGate> make_shard_gate(ShardGateFiles files, const RdrrManifest& manifest);

}  // namespace doppler::formats
