// Where this program and its libraries lie: libraries that are opened at run time are looked for beside them.
#pragma once

#include <string>

namespace doppler {

std::string program_folder();
// The folder of the file this code was loaded from: the program, or libdoppler.so in another program.
std::string own_folder();

}  // namespace doppler
