# Finds cuDNN by header and library, beside the CUDA toolkit or where cuDNN_ROOT says, and defines cuDNN::cuDNN and
# cuDNN_VERSION.
find_path(cuDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(cuDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR})
mark_as_advanced(cuDNN_INCLUDE_DIR cuDNN_LIBRARY)

if(cuDNN_INCLUDE_DIR AND EXISTS ${cuDNN_INCLUDE_DIR}/cudnn_version.h)
  file(STRINGS ${cuDNN_INCLUDE_DIR}/cudnn_version.h lines REGEX "define CUDNN_(MAJOR|MINOR|PATCHLEVEL) ")
  string(REGEX MATCHALL "[0-9]+" cuDNN_VERSION "${lines}")
  list(JOIN cuDNN_VERSION . cuDNN_VERSION)
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(cuDNN REQUIRED_VARS cuDNN_LIBRARY cuDNN_INCLUDE_DIR VERSION_VAR cuDNN_VERSION)

if(cuDNN_FOUND AND NOT TARGET cuDNN::cuDNN)
  add_library(cuDNN::cuDNN UNKNOWN IMPORTED)
  set_target_properties(cuDNN::cuDNN PROPERTIES
    IMPORTED_LOCATION "${cuDNN_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${cuDNN_INCLUDE_DIR}")
endif()
