// A file may be cut while it is mapped: the system then answers a read of the missing part with SIGBUS, which ends a
// process. The handler here, installed with the first mapping, puts zeros in place of the missing part and leaves a
// mark that the reader can ask for. Signals for other addresses go to the previous handler.
#pragma once

#include <cstddef>
#include <cstdint>

namespace doppler {

struct WatchedRange;  // never freed, since a handler may look at it at any time; used again

// Thread-safe, each.
WatchedRange* watch_range(const uint8_t* data, size_t bytes);
void unwatch_range(WatchedRange* range);  // before it is unmapped; null: nothing
// True: some bytes of the range could not be read, and are zeros now.
bool was_cut(const WatchedRange* range);

}  // namespace doppler
