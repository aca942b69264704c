// Files are never mapped in WebAssembly, so there is nothing to guard (shard_gate.h).
#include "formats/rdrr/shard_gate.h"

namespace doppler::formats {

std::unique_ptr<ShardGate> make_shard_gate(ShardGateFiles /*files*/, const RdrrManifest& /*manifest*/) {
  return nullptr;
}

}  // namespace doppler::formats
