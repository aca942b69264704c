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

# The sources that work through whole prompts and whole files; all others are compiled for size. The precompiled header
# is made for size too.
function(optimise_for_speed)
  foreach(source
      tokenizer/bpe_encoder tokenizer/json_scanner tokenizer/normaliser tokenizer/piece_encoder tokenizer/pre_tokenizers
      tokenizer/sentence_piece_encoder tokenizer/special_matcher tokenizer/splitter tokenizer/token_index
      tokenizer/vocab tokenizer/word_piece_encoder tokenizer/regex/regex_scan tokenizer/unicode/normalise
      tokenizer/unicode/unicode
      formats/quant/blocks_of_32 formats/quant/codec formats/quant/k_large formats/quant/k_small formats/quant/plain
      formats/quant/repack formats/quant/repack_tiles formats/quant/tables)
    string(REGEX MATCH "^[a-z]+" layer ${source})
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/${source}.cpp TARGET_DIRECTORY doppler_${layer}
      PROPERTIES COMPILE_OPTIONS -O2 SKIP_PRECOMPILE_HEADERS ON)
  endforeach()
endfunction()

# DOPPLER_LATER: the sources of src/web/later.txt. later_sources.txt has a row for each, with the functions that stay, and
# a row for each WGSL file.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/web/later.txt)
file(STRINGS ${CMAKE_SOURCE_DIR}/src/web/later.txt lines REGEX "^[^#]")
set(DOPPLER_LATER "")
set(rows "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE " .*" "" pattern "${line}")
  string(REGEX REPLACE "^[^ ]+( but)?" "" staying "${line}")
  file(GLOB found RELATIVE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/src/${pattern})
  list(FILTER found INCLUDE REGEX "\\.(cpp|wgsl)$")
  if(NOT found)
    message(FATAL_ERROR "src/web/later.txt names ${pattern}, which is no source below src/.")
  endif()
  foreach(source IN LISTS found)
    list(APPEND DOPPLER_LATER ${CMAKE_SOURCE_DIR}/src/${source})
    string(APPEND rows "${source}${staying}\n")
  endforeach()
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/later_sources.txt CONTENT "${rows}" @ONLY)

# With DOPPLER_BATCHES: no batch has sources of both modules, since an object goes to one module.
function(part_batches target)
  get_target_property(sources ${target} SOURCES)
  set(first 0)
  set(later 0)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    set(module first)
    if(path IN_LIST DOPPLER_LATER)
      set(module later)
    endif()
    math(EXPR batch "${${module}} / 8")
    math(EXPR ${module} "${${module}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${module}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()
