// Work split over the processor's cores, for loops over independent pieces of memory. In WebAssembly, which has one
// thread, a plain loop.
#pragma once

#include <cstddef>
#include <functional>

namespace doppler {

// Calls work(i) once for each i in [0, count), on several threads at once and in any order; returns when all are done.
// `work` must not throw. Threads are started for the call, so one piece should take a tenth of a millisecond or more.
void parallel_for(size_t count, const std::function<void(size_t)>& work);

}  // namespace doppler
