# CMake before 3.31 wants a file of this name to know the system. What it has to know is in ../WebAssembly.cmake.
