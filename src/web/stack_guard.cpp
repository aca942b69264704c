// The symbols of the stack protector, with which the packaged C++ library is compiled and which its C library
// lacks.
#include <cstdint>
#include <cstdlib>

extern "C" {
extern const uintptr_t __stack_chk_guard;
const uintptr_t __stack_chk_guard = 0x5C0FFEE5;  // any value no accident writes
[[noreturn]] void __stack_chk_fail() { std::abort(); }
}
