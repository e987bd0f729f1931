# Finds xsimd by its header and defines xsimd::xsimd and xsimd_VERSION.
#
# xsimd's own package file is not used: Debian's links the library xtl, which is not there.
find_path(xsimd_INCLUDE_DIR xsimd/xsimd.hpp)
mark_as_advanced(xsimd_INCLUDE_DIR)

if(xsimd_INCLUDE_DIR)
  file(STRINGS ${xsimd_INCLUDE_DIR}/xsimd/config/xsimd_config.hpp lines REGEX "define XSIMD_VERSION_[MP]")
  string(REGEX MATCHALL "[0-9]+" xsimd_VERSION "${lines}")
  list(JOIN xsimd_VERSION . xsimd_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(xsimd REQUIRED_VARS xsimd_INCLUDE_DIR VERSION_VAR xsimd_VERSION)

if(xsimd_FOUND AND NOT TARGET xsimd::xsimd)
  add_library(xsimd::xsimd INTERFACE IMPORTED)
  set_target_properties(xsimd::xsimd PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${xsimd_INCLUDE_DIR}")
endif()
