// Reads DOPPLER_WGSL_DIR; see wgsl_files.h.
#include <cstdio>

#include "base/file.h"
#include "base/own_folders_native.h"
#include "gpu/wgsl_files.h"
#include "gpu/wgsl_repeat.h"

namespace doppler::gpu {

Result<std::optional<std::string>> read_wgsl_from_disk(std::string_view name) {
  const std::string folder = environment_variable("DOPPLER_WGSL_DIR");
  if (folder.empty()) return std::nullopt;
  const std::string path = folder + "/" + std::string(name) + ".wgsl";
  FILE* file = open_stdio(path, "rb");
  if (!file) return std::nullopt;
  std::string text;
  char piece[4096];
  for (size_t count = 0; (count = std::fread(piece, 1, sizeof piece, file)) > 0;) text.append(piece, count);
  std::fclose(file);
  auto expanded = expand_wgsl(text);
  if (!expanded) {
    return fail(ErrorKind::kInvalidInput, "%s: %s", path.c_str(), expanded.error().c_str());
  }
  return std::move(*expanded);
}

}  // namespace doppler::gpu
