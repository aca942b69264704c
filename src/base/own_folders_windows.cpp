// own_folders_native.h by the names of loaded modules, and the environment as Windows sets it.
#include <algorithm>

#include "base/own_folders_native.h"
#include "base/system_windows.h"

namespace doppler {
namespace {

// The path has / between its parts, as everywhere in the program.
std::string folder_of_module(HMODULE module) {
  std::wstring path(MAX_PATH, L'\0');
  DWORD length = ::GetModuleFileNameW(module, path.data(), static_cast<DWORD>(path.size()));
  while (length == path.size()) {  // cut off
    path.resize(2 * path.size());
    length = ::GetModuleFileNameW(module, path.data(), static_cast<DWORD>(path.size()));
  }
  std::string out = narrow(std::wstring_view(path).substr(0, length));
  std::ranges::replace(out, '\\', '/');
  const size_t slash = out.rfind('/');
  return slash == std::string::npos ? "." : out.substr(0, slash);
}

}  // namespace

std::string program_folder() { return folder_of_module(nullptr); }

std::string own_folder() {
  static const char here = 0;
  HMODULE module = nullptr;
  constexpr DWORD kOfAddress =
      GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  if (!::GetModuleHandleExW(kOfAddress, reinterpret_cast<const wchar_t*>(&here), &module)) return ".";
  return folder_of_module(module);
}

std::string user_folder(UserFolder /*which*/) {
  std::string base = environment_variable("LOCALAPPDATA");
  std::ranges::replace(base, '\\', '/');
  return base.empty() ? base : base + "/doppler";
}

std::string home_folder() {
  std::string home = environment_variable("USERPROFILE");
  std::ranges::replace(home, '\\', '/');
  return home;
}

std::string environment_variable(const char* name) {
  const std::wstring key = wide(name);
  std::wstring value(::GetEnvironmentVariableW(key.c_str(), nullptr, 0), L'\0');
  value.resize(::GetEnvironmentVariableW(key.c_str(), value.data(), static_cast<DWORD>(value.size())));
  return narrow(value);
}

}  // namespace doppler
