#include "cli/beside_program.h"

#include <filesystem>

#include "base/own_folders_native.h"

namespace doppler::cli {

std::optional<std::string> beside_program(std::initializer_list<std::string_view> places,
                                          std::string_view file) {
  std::error_code error;
  for (std::filesystem::path folder = program_folder(); folder.has_relative_path();
       folder = folder.parent_path()) {
    for (const std::string_view place : places) {
      const std::filesystem::path found = folder / place;
      if (std::filesystem::exists(file.empty() ? found : found / file, error)) return found.generic_string();
    }
  }
  return std::nullopt;
}

}  // namespace doppler::cli
