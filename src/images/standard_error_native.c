// Debian compiles its static libpng and libjpeg for programs. They read the C library's variable stderr at a fixed
// distance, which code in a shared library may not. The linker's option --wrap=stderr gives all code of libdoppler.so
// this variable instead, which lies in the library itself.
#include <stdio.h>

extern FILE* __real_stderr;
__attribute__((visibility("hidden"))) FILE* __wrap_stderr;

// Before all other constructors of the library.
__attribute__((constructor(101))) static void take_standard_error(void) { __wrap_stderr = __real_stderr; }
