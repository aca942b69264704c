// shared_library.h by LoadLibrary().
#include "base/shared_library.h"
#include "base/system_windows.h"

namespace doppler {

// Libraries that are open are found by the names of their files, whoever opened them.
SharedLibrary SharedLibrary::open(const std::string& path, std::string& reason, bool /*for_others*/) {
  SharedLibrary library;
  const bool is_path = path.find_first_of("/\\") != std::string::npos;
  // The system looks beside a library of a path for the libraries that it needs. This wants the whole path, with
  // backslashes.
  std::wstring name = wide(path);
  if (is_path) {
    std::wstring whole(::GetFullPathNameW(name.c_str(), 0, nullptr, nullptr), L'\0');
    whole.resize(::GetFullPathNameW(name.c_str(), static_cast<DWORD>(whole.size()), whole.data(), nullptr));
    if (!whole.empty()) name = whole;
  }
  library.handle_ = ::LoadLibraryExW(name.c_str(), nullptr, is_path ? LOAD_WITH_ALTERED_SEARCH_PATH : 0);
  if (library) return library;
  reason = "cannot be opened (error " + std::to_string(::GetLastError()) + ")";
  return library;
}

void* SharedLibrary::address_of(const char* name) const {
  const FARPROC address = ::GetProcAddress(static_cast<HMODULE>(handle_), name);
  void* out = nullptr;
  std::memcpy(&out, &address, sizeof out);
  return out;
}

std::string library_file_name(const std::string& name) { return name + ".dll"; }

}  // namespace doppler
