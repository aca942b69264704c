// Remembers which shards of a model were hashed and found good: a file in the user's cache folder, a line for
// each shard with its hash and its file's identity (size, times, inode). A line that is not exactly what it
// should be counts for nothing, so a damaged stamp only costs time. Not part of the WebAssembly build.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "formats/rdrr/manifest.h"

namespace doppler::formats {

class VerifiedStamp {
 public:
  // folder: the user's cache; empty: no stamps are read or written. The others must outlive this.
  VerifiedStamp(const std::string& folder, const RdrrManifest& manifest,
                const std::vector<std::string>& identities);

  bool knows(size_t shard) const { return lines_.contains(line(shard)); }
  void note(size_t shard);
  // Writes what was noted. A cache that cannot be written is logged and otherwise ignored.
  void save();

 private:
  std::string line(size_t shard) const;

  const RdrrManifest& manifest_;
  const std::vector<std::string>& identities_;
  std::string path_;  // empty: none
  std::unordered_set<std::string> lines_;
  bool changed_ = false;
};

}  // namespace doppler::formats
