# Flags of the whole tree when it is built for WebAssembly (cmake/wasm32.cmake), and the one header-only dependency.

# Static libraries only, code that needs no relocation. Set here, because CMake 3.31 and newer have an (empty)
# Platform/WASI.cmake of their own, which they read instead of ours.
set_property(GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS FALSE)
set(CMAKE_C_COMPILE_OPTIONS_PIC "")
set(CMAKE_CXX_COMPILE_OPTIONS_PIC "")
set(CMAKE_EXECUTABLE_SUFFIX ".wasm")

set(DOPPLER_JSON_INCLUDE /usr/include CACHE PATH "The folder that holds nlohmann/json.hpp")
if(NOT EXISTS ${DOPPLER_JSON_INCLUDE}/nlohmann/json.hpp)
  message(FATAL_ERROR "There is no nlohmann/json.hpp in ${DOPPLER_JSON_INCLUDE}; install nlohmann-json3-dev.")
endif()
# A folder of its own: the host's other headers must not be seen.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include)
file(CREATE_LINK ${DOPPLER_JSON_INCLUDE}/nlohmann ${CMAKE_BINARY_DIR}/include/nlohmann COPY_ON_ERROR SYMBOLIC)
include_directories(SYSTEM ${CMAKE_BINARY_DIR}/include)

# size_t has 32 bits here. Sizes read from files are converted in sight (formats/source.h, host_size); those that
# the layers above compute were checked against memory that exists, and need no cast at every use.
target_compile_options(doppler_flags INTERFACE -Wno-shorten-64-to-32)
target_compile_definitions(doppler_flags INTERFACE JSON_NO_IO)  # no iostream: 235 KB
