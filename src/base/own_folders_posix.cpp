// own_folders_native.h by the dynamic loader, and the environment as the XDG base directories name it.
#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string_view>

#include "base/own_folders_native.h"

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

namespace doppler {
namespace {

struct Place {
  const char* variable;
  const char* below_home;
};
constexpr Place kPlaces[] = {
    {"XDG_CACHE_HOME", "/.cache"}, {"XDG_DATA_HOME", "/.local/share"}, {"XDG_CONFIG_HOME", "/.config"}};

std::string folder_of(std::string_view file) {
  const size_t slash = file.rfind('/');
  return slash == std::string_view::npos ? "." : std::string(file.substr(0, slash));
}

}  // namespace

std::string program_folder() {
  char path[PATH_MAX];
#ifdef __APPLE__
  char named[PATH_MAX];
  uint32_t room = sizeof named;
  if (_NSGetExecutablePath(named, &room) != 0 || !::realpath(named, path)) return ".";
  return folder_of(path);
#else
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0) return ".";
  return folder_of({path, static_cast<size_t>(length)});
#endif
}

std::string own_folder() {
  static const char here = 0;
  Dl_info info = {};
  if (::dladdr(&here, &info) == 0 || !info.dli_fname) return ".";
  return folder_of(info.dli_fname);
}

std::string user_folder(UserFolder which) {
  const Place& place = kPlaces[static_cast<size_t>(which)];
  if (const std::string base = environment_variable(place.variable); !base.empty()) return base + "/doppler";
  const std::string home = home_folder();
  return home.empty() ? std::string() : home + place.below_home + "/doppler";
}

std::string home_folder() { return environment_variable("HOME"); }

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

}  // namespace doppler
