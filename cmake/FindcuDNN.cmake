# Finds cuDNN by header and library, beside the CUDA toolkit, where cuDNN_ROOT says, or else as the package of Python
# that PyTorch comes with, and defines cuDNN::cuDNN and cuDNN_VERSION.
find_path(cuDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(cuDNN_LIBRARY NAMES cudnn libcudnn.so.9 HINTS ${CUDAToolkit_LIBRARY_DIR})
if(NOT cuDNN_INCLUDE_DIR OR NOT cuDNN_LIBRARY)
  execute_process(COMMAND python3 -c "import nvidia.cudnn; print(nvidia.cudnn.__path__[0], end='')"
    OUTPUT_VARIABLE package ERROR_QUIET)
  if(package)
    find_path(cuDNN_INCLUDE_DIR cudnn.h PATHS ${package}/include NO_DEFAULT_PATH)
    find_library(cuDNN_LIBRARY NAMES libcudnn.so.9 PATHS ${package}/lib NO_DEFAULT_PATH)
  endif()
endif()
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
