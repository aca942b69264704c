#include "cli/beside_program.h"

#include <filesystem>

namespace doppler::cli {

std::optional<std::string> beside_program(std::initializer_list<std::string_view> places,
                                          std::string_view file) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  for (std::filesystem::path folder = program.parent_path(); !error && folder.has_relative_path();
       folder = folder.parent_path()) {
    for (const std::string_view place : places) {
      const std::filesystem::path found = folder / place;
      if (std::filesystem::exists(file.empty() ? found : found / file, error)) return found.string();
    }
  }
  return std::nullopt;
}

}  // namespace doppler::cli
