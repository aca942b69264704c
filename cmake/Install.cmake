# libdoppler.so with its package file, and what `cmake --install` copies:
#   bin/doppler, include/doppler, lib/libdoppler.so, lib/cmake/doppler (find_package(doppler), doppler::doppler),
#   lib/pkgconfig/doppler.pc, lib/libdawn.so and lib/libwgpu_native.so (the providers found by tools/setup),
#   lib/libllguidance.so with lib/libdoppler_python_names.so (grammars), share/doppler/models,
#   lib/doppler-chosen-device/libvulkan.so.1 (the second GPU under Dawn).
# tests/install checks that a program builds and runs against the result.
if(NOT TARGET doppler_api OR CMAKE_SYSTEM_NAME STREQUAL "WASI")
  return()
endif()
include(GNUInstallDirs)
# On Windows libraries lie beside the program. The library for other programs is not built there yet.
if(WIN32)
  install(TARGETS doppler RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  foreach(library wgpu_native.dll llguidance.dll libcurl.dll)
    install(PROGRAMS ${DOPPLER_DEPS_DIR}/lib/${library} DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)
  endforeach()
  install(TARGETS doppler_python_names RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/doppler OPTIONAL)
  return()
endif()
include(CMakePackageConfigHelpers)

# The public API whole (C and C++, and base for Error), of the layers below what these use.
add_library(doppler_shared SHARED
  $<TARGET_OBJECTS:doppler_capi> $<TARGET_OBJECTS:doppler_api> $<TARGET_OBJECTS:doppler_base>)
add_library(doppler::doppler ALIAS doppler_shared)
target_link_libraries(doppler_shared PRIVATE doppler_dispatch doppler_scheduler doppler_engine doppler_guidance)
set(symbols ${CMAKE_CURRENT_LIST_DIR}/libdoppler.map)
target_link_options(doppler_shared PRIVATE LINKER:--version-script=${symbols})
target_sources(doppler_shared PRIVATE ${CMAKE_SOURCE_DIR}/src/images/standard_error_native.c)
target_link_options(doppler_shared PRIVATE LINKER:--wrap=stderr)
if(DOPPLER_PORTABLE)
  target_link_options(doppler_shared PRIVATE -static-libstdc++ -static-libgcc)
endif()
target_include_directories(doppler_shared INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(doppler_shared INTERFACE cxx_std_20)
set_target_properties(doppler_shared PROPERTIES
  OUTPUT_NAME doppler EXPORT_NAME doppler LINKER_LANGUAGE CXX
  LINK_DEPENDS ${symbols} VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/doppler)
install(TARGETS doppler_shared EXPORT doppler-config LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT doppler-config NAMESPACE doppler:: DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/doppler-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/doppler-config-version.cmake DESTINATION ${package})
file(RELATIVE_PATH prefix_from_pc /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix_from_pc ${prefix_from_pc})
configure_file(${CMAKE_CURRENT_LIST_DIR}/doppler.pc.in ${CMAKE_BINARY_DIR}/doppler.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/doppler.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/doppler DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

if(TARGET doppler)
  install(TARGETS doppler RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
# Beside libdoppler.so and in ../lib of the program: where both look for them.
foreach(library libdawn.so libwgpu_native.so libllguidance.so)
  install(PROGRAMS ${DOPPLER_DEPS_DIR}/lib/${library} DESTINATION ${CMAKE_INSTALL_LIBDIR} OPTIONAL)
endforeach()
install(TARGETS doppler_python_names LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET doppler_chosen_device)
  install(TARGETS doppler_chosen_device LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/doppler-chosen-device)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/models DESTINATION ${CMAKE_INSTALL_DATADIR}/doppler OPTIONAL)
