// Finding, opening and recognising a WebGPU library; see provider_native.h.
#include "gpu/provider_native.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/own_folders_native.h"
#include "base/shared_library.h"

namespace doppler::gpu {
namespace {

std::vector<std::string> candidates(const std::string& which) {
  std::vector<std::string> files;
  if (which == "dawn") {
    files = {library_file_name("dawn"), library_file_name("webgpu_dawn")};
  } else if (which == "wgpu") {
    files = {library_file_name("wgpu_native")};
  } else {
    return {which};
  }
  std::vector<std::string> paths;
  for (const std::string& folder :
       {program_folder() + "/../lib", own_folder(), std::string(DOPPLER_PROVIDER_DIR)}) {
    for (const std::string& file : files) paths.push_back(folder + "/" + file);
  }
  paths.insert(paths.end(), files.begin(), files.end());
  return paths;
}

// The library, or none with what the loader said added to `reasons`.
SharedLibrary open_library(const std::string& path, std::string& reasons) {
  const bool is_path = path.find_first_of("/\\") != std::string::npos;
  std::string reason = "no such file";
  SharedLibrary library;
  if (!is_path || is_there(path)) library = SharedLibrary::open(path, reason);
  if (!library) reasons += "\n  " + path + ": " + reason;
  return library;
}

Result<std::unique_ptr<Provider>> read_functions(const SharedLibrary& library, const std::string& path) {
  auto provider = std::make_unique<Provider>();
  provider->path = path;
  std::string missing;  // the first missing one
  size_t n_missing = 0;
#define DOPPLER_FIND(function) \
  if (!library.find("wgpu" #function, provider->function) && ++n_missing == 1) missing = "wgpu" #function;
  DOPPLER_WGPU_FUNCTIONS(DOPPLER_FIND)
#undef DOPPLER_FIND
  if (n_missing != 0) {
    return fail(ErrorKind::kUnsupported, "%s is not a WebGPU library Doppler can use: it lacks %s%s.",
                path.c_str(), missing.c_str(),
                n_missing == 1 ? "" : format_text(" and %zu more functions", n_missing - 1).c_str());
  }
#define DOPPLER_FIND(function) library.find("wgpu" #function, provider->function);
  DOPPLER_WGPU_NATIVE_FUNCTIONS(DOPPLER_FIND)
#undef DOPPLER_FIND
  library.find("wgpuAdapterPropertiesSubgroupMatrixConfigsFreeMembers",
               provider->SubgroupMatrixConfigsFreeMembers);
  provider->is_dawn = provider->DevicePoll == nullptr;
  provider->name = provider->is_dawn ? "dawn" : "wgpu";
  // The function came with the form of the description of an instance that this program gives. An older Dawn reads
  // another one there, and numbers its features otherwise.
  decltype(&wgpuGetInstanceFeatures) newer = nullptr;
  if (provider->is_dawn && !library.find("wgpuGetInstanceFeatures", newer)) {
    return fail(ErrorKind::kUnsupported,
                "%s is an older Dawn, whose structures and numbers of features are others: it lacks "
                "wgpuGetInstanceFeatures.",
                path.c_str());
  }
  return provider;
}

}  // namespace

Result<const Provider*> Provider::open(const std::string& which) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Provider>> opened;
  const std::lock_guard lock(mutex);
  if (const auto found = opened.find(which); found != opened.end()) return found->second.get();

  std::string reasons;
  for (const std::string& path : candidates(which)) {
    const SharedLibrary library = open_library(path, reasons);
    if (!library) continue;
    DP_TRY(auto provider, read_functions(library, path));
    log(LogLevel::kDebug, "WebGPU provider %s: %s", provider->name.c_str(), path.c_str());
    return (opened[which] = std::move(provider)).get();
  }
  return fail(
      ErrorKind::kDevice,
      "No WebGPU library was found for \"%s\" (allowed: dawn, wgpu or the path of a library). Tried:%s",
      which.c_str(), reasons.c_str());
}

std::string from_view(WGPUStringView text) {
  if (!text.data) return {};
  return {text.data, text.length == WGPU_STRLEN ? std::strlen(text.data) : text.length};
}

}  // namespace doppler::gpu
