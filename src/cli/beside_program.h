// Files beside the program: in the checkout around the build tree (build/<preset>/src/cli/doppler), or as installed
// (bin/doppler, share/doppler).
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace doppler::cli {

// The first of the places that holds `file`, looked for in the program's folder and then in each folder above it.
// If `file` is empty, the place itself.
std::optional<std::string> beside_program(std::initializer_list<std::string_view> places,
                                          std::string_view file = "");

}  // namespace doppler::cli
