# Toolchain of the WebAssembly build (preset `wasm`): the distribution's Clang and its WebAssembly libraries, no SDK.
# docs/design/web.md says why each flag is there. The result is src/web's doppler_core.wasm.
set(CMAKE_SYSTEM_NAME WASI)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})  # Platform/WASI.cmake
set(CMAKE_C_COMPILER clang-22)
set(CMAKE_CXX_COMPILER clang++-22)
set(CMAKE_AR llvm-ar-22)
set(CMAKE_RANLIB llvm-ranlib-22)
set(DOPPLER_WASM_NM llvm-nm-22)
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
# -mtail-call is for coroutines: a loop that awaits tasks which finish at once would otherwise grow the stack with every
# turn. Other tail calls stay off: Clang 22 lets one pass a struct that lies in the stack frame it has just given up.
# The packaged libraries lie under the target's old name, which Clang calls deprecated.
set(CMAKE_CXX_FLAGS_INIT "-msimd128 -mtail-call -fno-optimize-sibling-calls -Wno-deprecated")
# Small: what is hot is named in WebAssembly.cmake.
set(CMAKE_CXX_FLAGS_RELEASE "-Oz -DNDEBUG" CACHE STRING "")
