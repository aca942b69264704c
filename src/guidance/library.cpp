#include "guidance/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/own_folders_native.h"

namespace doppler::guidance {
namespace {

constexpr const char* kLibrary = "libllguidance.so";
constexpr const char* kPythonNames = "libdoppler_python_names.so";

// The first of the files that is there and opens; null: none, with what the loader said in `reason`.
void* open_first(const char* name, const char* built_in, int flags, std::string* reason) {
  for (const std::string& folder : {program_folder() + "/../lib", own_folder(), std::string(built_in)}) {
    const std::string path = folder + "/" + name;
    if (access(path.c_str(), F_OK) != 0) continue;
    if (void* handle = dlopen(path.c_str(), flags)) return handle;
    const char* text = dlerror();
    *reason = text ? text : path + " cannot be opened";
  }
  if (reason->empty()) *reason = std::string(name) + " was not found";
  return nullptr;
}

Result<Library> open_now() {
  std::string reason;
  // If Python runs in this process, its own names come first, as the program's do.
  void* library = nullptr;
  if (open_first(kPythonNames, DOPPLER_PYTHON_NAMES_DIR, RTLD_NOW | RTLD_GLOBAL, &reason))
    library = open_first(kLibrary, DOPPLER_LIBRARY_DIR, RTLD_NOW | RTLD_LOCAL, &reason);
  if (!library) {
    return fail(ErrorKind::kUnsupported, "Grammars need llguidance, which tools/setup installs: %s.",
                reason.c_str());
  }
  Library out;
  const auto find = [&](const char* name, auto& target) {
    void* address = dlsym(library, name);
    std::memcpy(&target, &address, sizeof target);
    if (!address) reason = name;
  };
#define DOPPLER_LLG_FIND(name, result, arguments) find("llg_" #name, out.name);
  DOPPLER_LLG_FUNCTIONS(DOPPLER_LLG_FIND)
#undef DOPPLER_LLG_FIND
  if (!reason.empty())
    return fail(ErrorKind::kUnsupported, "Grammars need another version of llguidance: this one lacks %s.",
                reason.c_str());
  return out;
}

}  // namespace

Result<const Library*> open_library() {
  static const Result<Library> opened = open_now();
  if (!opened) return forward(Error(opened.error()));
  return &*opened;
}

}  // namespace doppler::guidance
