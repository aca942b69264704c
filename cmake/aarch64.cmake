# Toolchain of the build for Linux on 64-bit Arm on a Debian of another machine (preset `arm64`): Debian's cross compiler,
# whose C library is that of the same Debian, and the libraries that `tools/setup arm64` unpacked.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(root ${CMAKE_CURRENT_LIST_DIR}/../.deps/arm64/root)
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# The folder lies outside of the compiler's own, so that its two folders of headers are named.
foreach(language C CXX)
  set(CMAKE_${language}_STANDARD_INCLUDE_DIRECTORIES ${root}/usr/include ${root}/usr/include/aarch64-linux-gnu)
endforeach()
set(CMAKE_EXE_LINKER_FLAGS_INIT -L${root}/usr/lib/aarch64-linux-gnu)
set(CMAKE_SHARED_LINKER_FLAGS_INIT ${CMAKE_EXE_LINKER_FLAGS_INIT})
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L ${root})
