#include "base/own_folders_native.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <string_view>

namespace doppler {

std::string program_folder() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return ".";
  const std::string_view full(path, static_cast<size_t>(length));
  return std::string(full.substr(0, full.rfind('/')));
}

std::string own_folder() {
  static const char here = 0;
  Dl_info info = {};
  if (dladdr(&here, &info) == 0 || !info.dli_fname) return ".";
  const std::string_view full(info.dli_fname);
  const size_t slash = full.rfind('/');
  return slash == std::string_view::npos ? "." : std::string(full.substr(0, slash));
}

}  // namespace doppler
