// shared_library.h by dlopen().
#include <dlfcn.h>

#include "base/shared_library.h"

namespace doppler {

SharedLibrary SharedLibrary::open(const std::string& path, std::string& reason, bool for_others) {
  SharedLibrary library;
  library.handle_ = ::dlopen(path.c_str(), RTLD_NOW | (for_others ? RTLD_GLOBAL : RTLD_LOCAL));
  if (library) return library;
  const char* const text = ::dlerror();
  reason = text ? text : "cannot be opened";
  return library;
}

void* SharedLibrary::address_of(const char* name) const { return ::dlsym(handle_, name); }

std::string library_file_name(const std::string& name) {
#ifdef __APPLE__
  return "lib" + name + ".dylib";
#else
  return "lib" + name + ".so";
#endif
}

}  // namespace doppler
