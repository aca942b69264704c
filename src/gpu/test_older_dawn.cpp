// A library that has the names of an older Dawn and nothing else, for native_guards_test: it must be refused before one
// of them is called.
#include <cstdlib>

#include "gpu/provider_functions.h"

#define DOPPLER_ABORTS(name) \
  extern "C" void wgpu##name() { std::abort(); }
DOPPLER_WGPU_FUNCTIONS(DOPPLER_ABORTS)
