#include "guidance/library.h"

#include <string>
#include <vector>

#include "base/file.h"
#include "base/own_folders_native.h"
#include "base/shared_library.h"

namespace doppler::guidance {
namespace {

// The first of the files that is there and opens; none: what the loader said is in `reason`.
SharedLibrary open_first(const std::string& name, const char* built_in, bool for_others,
                         std::string& reason) {
  for (const std::string& folder : {program_folder() + "/../lib", own_folder(), std::string(built_in)}) {
    const std::string path = folder + "/" + name;
    if (!is_there(path)) continue;
    if (SharedLibrary library = SharedLibrary::open(path, reason, for_others)) return library;
  }
  if (reason.empty()) reason = name + " was not found";
  return {};
}

Result<Library> open_now() {
  std::string reason;
  // If Python runs in this process, its own names come first, as the program's do.
  SharedLibrary library;
  if (open_first(DOPPLER_PYTHON_NAMES_FILE, DOPPLER_PYTHON_NAMES_DIR, true, reason))
    library = open_first(library_file_name("llguidance"), DOPPLER_LIBRARY_DIR, false, reason);
  if (!library) {
    return fail(ErrorKind::kUnsupported, "Grammars need llguidance, which tools/setup installs: %s.",
                reason.c_str());
  }
  Library out;
  const auto find = [&](const char* name, auto& target) {
    if (!library.find(name, target)) reason = name;
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
