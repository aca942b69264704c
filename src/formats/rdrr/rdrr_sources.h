// The two ByteSources over the shards of an RDRR model, end to end, used by rdrr_reader.cpp:
//   mapped   natively; ready() waits for the shard gate and asks the system for the shards that come next
//   cached   elsewhere; whole shards are read, hashed and kept, the least recently used one goes first. On a host
//            that cannot hash, whole shards are of no use: exactly the ranges that callers need are read or streamed
#pragma once

#include <memory>

#include "formats/rdrr/manifest.h"
#include "formats/source.h"

namespace doppler::formats {

// `manifest` must outlive the source.
std::unique_ptr<ByteSource> make_mapped_shards(JoinedFiles files, const RdrrManifest& manifest,
                                               const std::string& folder, bool verify,
                                               const std::string& stamp_folder);

struct CachedShardsOptions {
  bool verify = true;        // hash whole shards
  uint64_t cache_bytes = 0;  // of shards kept; one is always kept
};
std::unique_ptr<ByteSource> make_cached_shards(FileSet& files, const RdrrManifest& manifest,
                                               CachedShardsOptions options);

}  // namespace doppler::formats
