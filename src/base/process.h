// A program and its machine: arguments, terminals, memory, limits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace doppler {

// To be called first in main(): the arguments without the program's name, in UTF-8. Standard input and output then keep
// every byte, and a terminal shows UTF-8.
std::vector<std::string> begin_program(int argc, char** argv);

enum class StandardStream : uint8_t { kInput, kOutput, kError };
bool is_terminal(StandardStream stream);
bool is_pipe(StandardStream stream);  // writing to it fails only after its reader has gone away

uint64_t process_id();
uint64_t machine_memory_bytes();
// Another text each time the machine has started. Empty: the system does not tell.
std::string boot_id();

// Raises the number of files and sockets that may be open, if the system lets this program. The number then.
uint64_t raise_open_files(uint64_t wanted);
uint64_t most_open_files();
// A reader that goes away is then an error of a write, not the end of the program.
void ignore_closed_pipes();

}  // namespace doppler
