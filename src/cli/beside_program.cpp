#include "cli/beside_program.h"

#include "base/folders.h"
#include "base/own_folders_native.h"

namespace doppler::cli {

std::optional<std::string> beside_program(std::initializer_list<std::string_view> places,
                                          std::string_view file) {
  std::string folder = program_folder();
  for (std::string above; !folder.empty() && (above = parent_path(folder)) != folder; folder = above) {
    for (const std::string_view place : places) {
      const std::string found = joined_path(folder, std::string(place));
      if (is_there(file.empty() ? found : joined_path(found, std::string(file)))) return found;
    }
  }
  return std::nullopt;
}

}  // namespace doppler::cli
