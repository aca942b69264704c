// Libraries that are opened at run time. They stay open until the process ends.
#pragma once

#include <cstring>
#include <string>

namespace doppler {

class SharedLibrary {
 public:
  SharedLibrary() = default;  // none
  // `path`: a path, or a name that the system looks for. `for_others`: libraries that are opened later find its names.
  // None, with the loader's own words in `reason`: it is not there or cannot be used.
  static SharedLibrary open(const std::string& path, std::string& reason, bool for_others = false);
  explicit operator bool() const { return handle_ != nullptr; }
  // False: it lacks the name, and `target` is null.
  template <class Function>
  bool find(const char* name, Function*& target) const {
    void* const address = address_of(name);
    std::memcpy(&target, &address, sizeof target);
    return address != nullptr;
  }

 private:
  void* address_of(const char* name) const;
  void* handle_ = nullptr;
};

// "libNAME.so", "libNAME.dylib" or "NAME.dll".
std::string library_file_name(const std::string& name);

}  // namespace doppler
