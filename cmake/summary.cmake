# Prints what was found, and for each absence what it costs.
function(taut_report name found version cost)
  if(found)
    message(STATUS "  ${name}: ${version}")
  else()
    message(STATUS "  ${name}: not used; ${cost}")
  endif()
endfunction()

message(STATUS "Taut ${PROJECT_VERSION}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}")
taut_report("RapidJSON" 1 "${RapidJSON_VERSION}" "")
taut_report("oneDNN   " ${TAUT_HAS_ONEDNN} "${oneDNN_VERSION}"
  "matrix products run on the portable kernels, about 2x slower: apt install libdnnl-dev")
taut_report("OpenMP   " ${TAUT_HAS_OPENMP} "${OpenMP_CXX_VERSION}"
  "kernels run on one thread: use g++, or apt install libomp-dev for clang")
taut_report("xsimd    " ${TAUT_HAS_XSIMD} "${xsimd_VERSION}"
  "elementwise kernels rely on the compiler's vectoriser, exp and tanh about 5x slower: apt install libxsimd-dev")
taut_report("stb_image" ${TAUT_HAS_STB} "${stb_VERSION}"
  "image files (PNG, JPEG) cannot be read: apt install libstb-dev")
taut_report("zlib     " ${TAUT_HAS_ZLIB} "${ZLIB_VERSION_STRING}"
  "compressed data sets (.gz) cannot be read: apt install zlib1g-dev")
taut_report("CUDA     " ${TAUT_HAS_CUDA} "${CUDAToolkit_VERSION}, cuDNN ${cuDNN_VERSION}, for ${CMAKE_CUDA_ARCHITECTURES}"
  "models cannot run on GPUs: ${cuda_reason}")
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  message(STATUS "  CMAKE_BUILD_TYPE is not set, so that nothing is optimised: configure with -DCMAKE_BUILD_TYPE=Release")
endif()
