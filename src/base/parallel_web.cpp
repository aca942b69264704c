// parallel.h for a host with one thread.
#include "base/parallel.h"

namespace doppler {

void parallel_for(size_t count, const std::function<void(size_t)>& work) {
  for (size_t i = 0; i < count; ++i) work(i);
}

}  // namespace doppler
