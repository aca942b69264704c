# The functions every CMakeLists.txt of this project uses:
#   doppler_library(<layer> SOURCES ... [DEPS ...] [PRIVATE_DEPS ...] [APART sources|ALL] [EXCEPTIONS] [SPEED])
#   doppler_test(<name> SOURCES ... DEPS ... [LABELS ...] [ARGS ...] [APART sources|ALL])
#   doppler_fuzz(<name> SOURCES ... DEPS ... CORPUS <folder>)
# SPEED: optimised with -O2 instead of -O1, for layers that work for each token or byte.
# They hold the one set of compiler flags.

# The ending of the sources that know the operating system: NAME_posix.cpp or NAME_windows.cpp.
set(DOPPLER_SYSTEM posix)
if(WIN32)
  set(DOPPLER_SYSTEM windows)
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(doppler_flags INTERFACE)
target_compile_options(doppler_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-missing-field-initializers -Werror
  # GCC 12 reports false positives inside its own std::variant and in Result at -O2.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-free-nonheap-object -Wno-dangling-pointer>
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-stringop-overread>)
target_include_directories(doppler_flags INTERFACE
  ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)

# Most of what a compiler does with one of these sources is to parse headers and to make the templates of the standard
# library: 1.7 of 2.5 s (GCC 12, -O2, 2026-11-25). A batch does that once. The largest batch compiles in 12 s.
option(DOPPLER_BATCHES "Compile the sources of a target together, twenty at a time, and precompile headers: for whole builds, not for edit loops" OFF)

# compile_in_batches(<target> [ALL|source...]): with DOPPLER_BATCHES, all but the sources named. ALL and the names are
# for sources that call different internal things alike. A new source gives its internal things names of its own.
function(compile_in_batches target)
  if(NOT DOPPLER_BATCHES OR "${ARGN}" STREQUAL "ALL")
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 20)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(CMAKE_SYSTEM_NAME STREQUAL "WASI")
    part_batches(${target})
  endif()
  # GCC takes an internal type of an included source, in the frame of a coroutine, for one of a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# The core is built without exceptions and RTTI: errors are values (base/result.h).
function(doppler_library layer)
  cmake_parse_arguments(ARG "EXCEPTIONS;SPEED" "" "SOURCES;DEPS;PRIVATE_DEPS;APART" ${ARGN})
  set(target doppler_${layer})
  add_library(${target} STATIC ${ARG_SOURCES})
  target_link_libraries(${target} PUBLIC $<BUILD_INTERFACE:doppler_flags> ${ARG_DEPS}
                                  PRIVATE ${ARG_PRIVATE_DEPS})
  compile_in_batches(${target} ${ARG_APART})
  set(options "")
  if(ARG_SPEED AND NOT CMAKE_SYSTEM_NAME STREQUAL "WASI")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O2>)
    set(options SPEED)
  endif()
  if(NOT ARG_EXCEPTIONS)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti>)
    precompile(${target} src/base ${options})
  endif()
endfunction()

# precompile(<target> <folder> [<options>]): with DOPPLER_BATCHES, the folder's precompiled.h, parsed by the first
# target that asks, once a build for each set of compiler options; <options> names the set. Without batches there is
# none: ccache keeps no source that uses such a header, and a missing include would not show.
function(precompile target folder)
  if(NOT DOPPLER_BATCHES)
    return()
  endif()
  set(header ${CMAKE_SOURCE_DIR}/${folder}/precompiled.h)
  get_property(first GLOBAL PROPERTY DOPPLER_FIRST_WITH_${header}_${ARGN})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${header})
    set_property(GLOBAL PROPERTY DOPPLER_FIRST_WITH_${header}_${ARGN} ${target})
  endif()
endfunction()

function(doppler_test name)
  if(NOT DOPPLER_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS;ARGS;APART" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE doppler_flags ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  compile_in_batches(${name} ${ARG_APART})
  precompile(${name} tests)
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  if(ARG_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
  endif()
endfunction()

# A libFuzzer target under ASan and UBSan; its corpus is also replayed as an ordinary test with the label fuzz. The
# target doppler_fuzzers builds all of them.
function(doppler_fuzz name)
  if(NOT DOPPLER_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "CORPUS" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE doppler_flags ${ARG_DEPS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  add_test(NAME ${name}_corpus COMMAND ${name} -runs=0 ${ARG_CORPUS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name}_corpus PROPERTIES LABELS fuzz)
  if(NOT TARGET doppler_fuzzers)
    add_custom_target(doppler_fuzzers)
  endif()
  add_dependencies(doppler_fuzzers ${name})
endfunction()
