// Others who may have pieces of a file besides its own address. src/swarm implements it.
#pragma once

#include <functional>

#include "base/sha256.h"
#include "store/files.h"
#include "store/journal.h"

namespace doppler::store {

class PieceSource {
 public:
  struct Wanted {
    File& file;        // has its full size
    Journal& journal;  // of pieces of kLeastPieceBytes if nothing was there; only right pieces may be noted
    uint64_t bytes;
    Sha256 sha256;
    bool has_other_source;              // somebody fetches the rest; otherwise waiting may be worth it
    std::function<void()> on_progress;  // after each note
  };
  virtual ~PieceSource() = default;
  // Fetches what it can and gives its bytes. Too little is no error. Errors: the disk, or ErrorKind::kCancelled.
  virtual Result<uint64_t> fill(const Wanted& wanted) = 0;
};

}  // namespace doppler::store
