// A file that is cut while it is mapped: the system answers a read of what is gone with SIGBUS, which ends a process. The
// handler here, installed with the first mapping, puts zeros in its place and leaves a mark; whoever read asks for it.
// Signals of other addresses go to the handler that was there before.
#pragma once

#include <cstddef>
#include <cstdint>

namespace doppler {

struct WatchedRange;  // never freed, since a handler may look at it at any time; used again

// Thread-safe, each.
WatchedRange* watch_range(const uint8_t* data, size_t bytes);
void unwatch_range(WatchedRange* range);  // before it is unmapped; null: nothing
// Some of it could not be read, and is zeros now.
bool was_cut(const WatchedRange* range);

}  // namespace doppler
