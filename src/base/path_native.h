// Between paths in UTF-8 and those of std::filesystem: for the sources of base only. A text that is not UTF-8 stays as
// it is on POSIX; on Windows its wrong bytes become U+FFFD.
#pragma once

#include <filesystem>
#include <string>

namespace doppler {

std::filesystem::path native_path(const std::string& text);
std::string path_text(const std::filesystem::path& path);  // with / between the parts

}  // namespace doppler
