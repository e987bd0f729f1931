# Finds stb_image by its header, stb/stb_image.h, and defines stb::stb and stb_VERSION.
find_path(stb_INCLUDE_DIR stb/stb_image.h)
mark_as_advanced(stb_INCLUDE_DIR)

if(stb_INCLUDE_DIR)
  file(STRINGS ${stb_INCLUDE_DIR}/stb/stb_image.h line LIMIT_COUNT 1 REGEX "stb_image - v[0-9.]+")
  string(REGEX MATCH "[0-9]+[.][0-9]+" stb_VERSION "${line}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(stb REQUIRED_VARS stb_INCLUDE_DIR VERSION_VAR stb_VERSION)

if(stb_FOUND AND NOT TARGET stb::stb)
  add_library(stb::stb INTERFACE IMPORTED)
  set_target_properties(stb::stb PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${stb_INCLUDE_DIR}")
endif()
