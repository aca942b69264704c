# Settings of the whole tree when it is built for Windows (cmake/mingw64.cmake): headers that every system shares, the
# libraries of `tools/setup windows`, and programs that need no DLL of the compiler.
set(DOPPLER_HOST_INCLUDE /usr/include CACHE PATH "The folder that holds nlohmann/json.hpp and vulkan/vulkan_core.h")
if(CMAKE_CROSSCOMPILING)
  # A folder of its own: the host's other headers must not be seen.
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include)
  foreach(folder nlohmann vulkan vk_video)
    if(NOT EXISTS ${DOPPLER_HOST_INCLUDE}/${folder})
      message(FATAL_ERROR "There is no ${DOPPLER_HOST_INCLUDE}/${folder}; install nlohmann-json3-dev and libvulkan-dev.")
    endif()
    file(CREATE_LINK ${DOPPLER_HOST_INCLUDE}/${folder} ${CMAKE_BINARY_DIR}/include/${folder} SYMBOLIC)
  endforeach()
  file(GLOB curl ${DOPPLER_HOST_INCLUDE}/curl ${DOPPLER_HOST_INCLUDE}/*-linux-gnu/curl)
  list(GET curl 0 curl)
  file(CREATE_LINK ${curl} ${CMAKE_BINARY_DIR}/include/curl SYMBOLIC)
  include_directories(SYSTEM ${CMAKE_BINARY_DIR}/include)
  set(DOPPLER_CURL_INCLUDE_DIR ${CMAKE_BINARY_DIR}/include CACHE PATH "The folder that holds curl/curl.h")
endif()
# The libraries of picture formats are looked for (src/images).
list(APPEND CMAKE_FIND_ROOT_PATH ${DOPPLER_DEPS_DIR})
set(DOPPLER_EVENT_INCLUDE_DIR ${DOPPLER_DEPS_DIR}/include CACHE PATH "The folder that holds event2/event.h")
set(DOPPLER_EVENT_CORE ${DOPPLER_DEPS_DIR}/lib/libevent_core.a ws2_32 iphlpapi CACHE STRING "libevent, and what it needs")

# Windows 10 and newer. The C library's own printf() knows no %zu; mingw-w64's does, but the compiler goes on checking
# for the other, so that formats are checked only by the native build. gmtime_r() is there for those who ask for POSIX.
target_compile_definitions(doppler_flags INTERFACE
  _WIN32_WINNT=0x0A00 NOMINMAX __USE_MINGW_ANSI_STDIO=1 _POSIX_C_SOURCE=200809L)
target_compile_options(doppler_flags INTERFACE -Wno-format -Wno-format-extra-args)
add_link_options(-static)
