# Lists of files that are made from the list of families, src/formats/architectures/family_list.h: CMake needs no more
# than a family's word there.
set(_family_list ${CMAKE_SOURCE_DIR}/src/formats/architectures/family_list.h)
set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_family_list})
file(STRINGS ${_family_list} _family_lines REGEX "^FAMILY(_LIKE)?\\([a-z0-9_]+")
set(DOPPLER_FAMILIES "")
foreach(line IN LISTS _family_lines)
  string(REGEX REPLACE "^FAMILY(_LIKE)?\\(([a-z0-9_]+).*" "\\2" family "${line}")
  list(APPEND DOPPLER_FAMILIES ${family})
endforeach()

# doppler_family_files(<variable> <folder>): FOLDER/NAME.cpp of each family that has one. A file about several families
# has the name of one of them. A linker's error names a row or a page that is nowhere.
function(doppler_family_files variable folder)
  set(files "")
  foreach(family IN LISTS DOPPLER_FAMILIES)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/${family}.cpp)
      list(APPEND files ${folder}/${family}.cpp)
    endif()
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# doppler_family_archives(<variable>): the archives of golden models in tests/data: families_NAME of each family that
# has one, and those of several families.
function(doppler_family_archives variable)
  set(archives families_dense families_generated families_hybrid families_mamba families_mla families_moe families_moe2
    families_nemotron families_next families_recurrent)
  foreach(family IN LISTS DOPPLER_FAMILIES)
    if(EXISTS ${CMAKE_SOURCE_DIR}/tests/data/families_${family}.tar.xz)
      list(APPEND archives families_${family})
    endif()
  endforeach()
  set(${variable} ${archives} PARENT_SCOPE)
endfunction()
