// Where this program and its libraries lie, since libraries that are opened at run time are looked for beside them, and
// where it keeps what is the user's.
#pragma once

#include <string>

namespace doppler {

std::string program_folder();
// The folder of the file this code was loaded from: the program, or libdoppler.so in another program.
std::string own_folder();

// kCache holds compiled kernels and the like, kData models, kConfig settings. POSIX: $XDG_CACHE_HOME/doppler or
// ~/.cache/doppler, $XDG_DATA_HOME/doppler or ~/.local/share/doppler, $XDG_CONFIG_HOME/doppler or ~/.config/doppler.
// Windows: all in %LOCALAPPDATA%\doppler. Empty: the environment names no such place. Nothing is made.
enum class UserFolder { kCache, kData, kConfig };
std::string user_folder(UserFolder which);
std::string home_folder();  // empty: there is none

// An environment variable in UTF-8. Empty: it is not set, or empty.
std::string environment_variable(const char* name);

}  // namespace doppler
