// Asks peers for their offers of some files, and fetches nothing.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "swarm/messages.h"

namespace doppler::swarm {

struct AskedFile {
  uint64_t bytes = 0;
  Sha256 sha256{};
};
struct Holding {
  std::string peer;                  // its address
  std::vector<uint64_t> held_bytes;  // of each file
  std::optional<Error> problem;      // it does not answer, or not as a peer
  uint64_t sum() const;
};
// peers: addresses as peer_url() gives them.
Result<std::vector<Holding>> ask_holdings(const std::vector<std::string>& peers,
                                          const std::vector<AskedFile>& files, uint32_t stall_seconds,
                                          const std::atomic<bool>* stop);

}  // namespace doppler::swarm
