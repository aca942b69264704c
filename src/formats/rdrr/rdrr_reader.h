// Opening an RDRR folder: its manifest, checked, and all shards as one ByteSource in which every tensor is
// contiguous. open_checkpoint() (formats/checkpoint.h) uses it, so that everything which opens a model opens
// RDRR too; code that wants the manifest reads Checkpoint::rdrr().
// Natively the shards are mapped one after the other; before bytes of a shard are used for the first time the shard is
// hashed by threads that run ahead of the reader (shard_gate.h). Elsewhere whole shards go through a cache of bounded
// size, or straight from the host to the GPU (rdrr_sources.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "formats/rdrr/manifest.h"
#include "formats/rdrr/rdrr_options.h"
#include "formats/source.h"

namespace doppler::formats {

struct OpenRdrr {
  std::unique_ptr<const RdrrManifest> manifest;  // `tensors` refers to it
  std::vector<std::string> unknown;              // members that this version does not know
  bool verified = false;                         // hashes are compared; false: not requested, or no hash here
  std::unique_ptr<ByteSource> tensors;           // a tensor's bytes begin at rdrr_position()
};

// Errors: no or a bad manifest.json, its hash is wrong, a shard is missing or of another size. Unknown members
// are logged, and so is what stays unverified.
Task<Result<OpenRdrr>> open_rdrr(FileSet& files, RdrrOptions options);

// Where a tensor begins in OpenRdrr::tensors.
uint64_t rdrr_position(const RdrrManifest& manifest, const RdrrTensor& tensor);

// An asset's bytes, of the manifest's size and (if verify) hash; empty: the manifest names no such asset.
Task<Result<std::optional<std::vector<uint8_t>>>> read_rdrr_asset(FileSet& files,
                                                                  const RdrrManifest& manifest,
                                                                  std::string file, bool verify);

}  // namespace doppler::formats
