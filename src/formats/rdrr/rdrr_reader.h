// Opening an RDRR folder: its manifest, checked, and all shards as one ByteSource in which every tensor is
// contiguous. open_checkpoint() (formats/checkpoint.h) uses it, so that everything which opens a model opens
// RDRR too; code that wants the manifest reads Checkpoint::rdrr().
// Natively the shards are mapped one behind the other; before bytes of a shard are used for the first time the
// shard is hashed by threads that run ahead of the reader (shard_gate.h). Elsewhere whole shards go through a
// cache of bounded size, or straight from the host to the GPU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "formats/rdrr/manifest.h"
#include "formats/source.h"

namespace doppler::formats {

struct RdrrOptions {
  bool verify = true;                   // false: hashes are not looked at, which is logged as a warning
  uint64_t cache_bytes = 256ull << 20;  // of verified shards in memory, where files are not mapped
};

struct OpenRdrr {
  RdrrManifest manifest;
  std::vector<std::string> unknown;     // members that this version does not know
  std::unique_ptr<ByteSource> tensors;  // a tensor's bytes begin at rdrr_position()
};

// Errors: no or a bad manifest.json, its hash is wrong, a shard is missing or of another size.
// Unknown members are logged. A missing SHA-256 on this host is logged with what stays unverified.
Task<Result<OpenRdrr>> open_rdrr(FileSet& files, RdrrOptions options);

// Where a tensor begins in OpenRdrr::tensors.
uint64_t rdrr_position(const RdrrManifest& manifest, const RdrrTensor& tensor);

// An asset's bytes, checked against its size and hash; empty: the manifest names no such asset.
Task<Result<std::optional<std::vector<uint8_t>>>> read_rdrr_asset(FileSet& files,
                                                                  const RdrrManifest& manifest,
                                                                  std::string_view file, bool verify);

}  // namespace doppler::formats
