# doppler_embed_wgsl(<target> FILES a.wgsl b.wgsl ...): makes the files, which lie somewhere under src/kernels,
# available to <target> as "kernels/<folder>/<file>.wgsl.h" and at run time through gpu::embedded_wgsl() (library
# doppler_wgsl, linked with doppler_gpu). May be called once a folder. tools/embed_wgsl does the work.

set(DOPPLER_WGSL_ROOT ${CMAKE_SOURCE_DIR}/src/kernels)
set(DOPPLER_WGSL_OUT ${CMAKE_BINARY_DIR}/generated)

# A message of a shader compiler names a line of the text, so native programs hold it as it is. In WebAssembly size
# counts.
set(DOPPLER_EMBED_FORM header)
if(CMAKE_SYSTEM_NAME STREQUAL "WASI")
  set(DOPPLER_EMBED_FORM compact)
endif()
set(_embed_dir ${CMAKE_SOURCE_DIR}/tools/embed_wgsl)
set(_embed_sources ${_embed_dir}/embed_wgsl.cpp ${_embed_dir}/header_writer.cpp ${_embed_dir}/wgsl_reader.cpp
  ${CMAKE_SOURCE_DIR}/src/gpu/wgsl_repeat.cpp)
if(CMAKE_CROSSCOMPILING)
  # The program runs while building, so it is built for this machine, not for the target.
  find_program(DOPPLER_HOST_CXX NAMES c++ g++ clang++ REQUIRED)
  set(DOPPLER_EMBED_WGSL ${CMAKE_BINARY_DIR}/host/embed_wgsl)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/host)
  add_custom_command(OUTPUT ${DOPPLER_EMBED_WGSL}
    COMMAND ${DOPPLER_HOST_CXX} -std=c++23 -O1 -I${CMAKE_SOURCE_DIR}/src -o ${DOPPLER_EMBED_WGSL} ${_embed_sources}
    DEPENDS ${_embed_sources} ${_embed_dir}/wgsl_reader.h ${_embed_dir}/header_writer.h
      ${CMAKE_SOURCE_DIR}/src/gpu/wgsl_repeat.h
    COMMENT "Building embed_wgsl for this machine" VERBATIM)
  add_custom_target(embed_wgsl DEPENDS ${DOPPLER_EMBED_WGSL})
else()
  add_executable(embed_wgsl ${_embed_sources})
  target_link_libraries(embed_wgsl PRIVATE doppler_flags)
  compile_in_batches(embed_wgsl)
  set(DOPPLER_EMBED_WGSL embed_wgsl)
endif()

# All files of all calls, known only when every folder has been read: hence a target's property.
file(MAKE_DIRECTORY ${DOPPLER_WGSL_OUT})
set(_registry ${DOPPLER_WGSL_OUT}/wgsl_registry.cpp)
add_custom_command(OUTPUT ${_registry}
  COMMAND ${DOPPLER_EMBED_WGSL} registry ${_registry} "$<TARGET_PROPERTY:doppler_wgsl,DOPPLER_WGSL_PATHS>"
  DEPENDS embed_wgsl "$<TARGET_PROPERTY:doppler_wgsl,DOPPLER_WGSL_HEADERS>"
  COMMENT "Listing the embedded WGSL files" COMMAND_EXPAND_LISTS VERBATIM)
add_library(doppler_wgsl STATIC ${_registry})
set_target_properties(doppler_wgsl PROPERTIES DOPPLER_WGSL_PATHS "" DOPPLER_WGSL_HEADERS "")
target_link_libraries(doppler_wgsl PRIVATE doppler_flags)
target_include_directories(doppler_wgsl PUBLIC ${DOPPLER_WGSL_OUT})

function(doppler_embed_wgsl target)
  cmake_parse_arguments(ARG "" "" "FILES" ${ARGN})
  set(headers)
  foreach(file IN LISTS ARG_FILES)
    get_filename_component(full ${file} ABSOLUTE)
    file(RELATIVE_PATH path ${DOPPLER_WGSL_ROOT} ${full})
    get_filename_component(stem ${file} NAME_WE)
    if(path MATCHES "^\\.\\.")
      message(FATAL_ERROR "${full} is not under ${DOPPLER_WGSL_ROOT}, where WGSL files live.")
    endif()
    # The stem is a C++ namespace: two files with one stem would define the same names.
    get_property(other GLOBAL PROPERTY DOPPLER_WGSL_STEM_${stem})
    if(other)
      message(FATAL_ERROR "${path} and ${other} share the name ${stem}; a file's name must be unique "
                          "(put the operation's name in front of it).")
    endif()
    set_property(GLOBAL PROPERTY DOPPLER_WGSL_STEM_${stem} ${path})
    set(header ${DOPPLER_WGSL_OUT}/kernels/${path}.h)
    get_filename_component(folder ${header} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${header}
      COMMAND ${DOPPLER_EMBED_WGSL} ${DOPPLER_EMBED_FORM} ${DOPPLER_WGSL_ROOT} ${path} ${header}
      DEPENDS embed_wgsl ${full} COMMENT "Embedding ${path}" VERBATIM)
    list(APPEND headers ${header})
    set_property(TARGET doppler_wgsl APPEND PROPERTY DOPPLER_WGSL_PATHS ${path})
    set_property(TARGET doppler_wgsl APPEND PROPERTY DOPPLER_WGSL_HEADERS ${header})
  endforeach()
  # A custom target, because a file's rule is only known in the folder that made it.
  string(SHA256 suffix "${CMAKE_CURRENT_SOURCE_DIR}${headers}")
  string(SUBSTRING ${suffix} 0 8 suffix)
  add_custom_target(${target}_wgsl_${suffix} DEPENDS ${headers})
  add_dependencies(${target} ${target}_wgsl_${suffix})
  add_dependencies(doppler_wgsl ${target}_wgsl_${suffix})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${DOPPLER_WGSL_OUT}>)
endfunction()
