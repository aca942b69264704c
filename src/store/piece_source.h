// Machines that may have pieces of a file besides its own address. src/swarm implements it.
#pragma once

#include <functional>
#include <optional>

#include "base/sha256.h"
#include "store/files.h"
#include "store/http_client.h"
#include "store/journal.h"

namespace doppler::store {

class PieceSource {
 public:
  struct Wanted {
    File& file;        // has its full size
    Journal& journal;  // a new one has pieces of kLeastPieceBytes; only right pieces may be noted
    uint64_t bytes;
    Sha256 sha256;
    std::optional<Request> source;      // the file's own address, which may be asked too; it fetches the rest
    std::function<void()> on_progress;  // after each note
  };
  struct Filled {
    uint64_t peer_bytes = 0, source_bytes = 0;
  };
  virtual ~PieceSource() = default;
  // Fetches what the peers have. It is no error if that is not all. Errors: the disk, or ErrorKind::kCancelled.
  virtual Result<Filled> fill(const Wanted& wanted) = 0;
};

}  // namespace doppler::store
