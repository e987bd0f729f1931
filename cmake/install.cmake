# Installs the headers, the CMake package and the pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/taut)
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(TARGETS taut EXPORT taut-targets)
if(TAUT_HAS_CUDA)
  install(TARGETS taut_cuda EXPORT taut-targets)
endif()
install(EXPORT taut-targets NAMESPACE taut:: DESTINATION ${config_dir})

configure_package_config_file(cmake/taut-config.cmake.in taut-config.cmake INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(taut-config-version.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/taut-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/taut-config-version.cmake
  cmake/FindcuDNN.cmake cmake/FindoneDNN.cmake cmake/FindRapidJSON.cmake cmake/Findstb.cmake cmake/Findxsimd.cmake
  DESTINATION ${config_dir})

set(pc_cflags "-DTAUT_HAS_ONEDNN=${TAUT_HAS_ONEDNN} -DTAUT_HAS_STB=${TAUT_HAS_STB}")
string(APPEND pc_cflags " -DTAUT_HAS_XSIMD=${TAUT_HAS_XSIMD} -DTAUT_HAS_ZLIB=${TAUT_HAS_ZLIB}")
set(pc_libs "-pthread")
if(TAUT_HAS_OPENMP)
  string(APPEND pc_cflags " ${OpenMP_CXX_FLAGS}")
  string(APPEND pc_libs " ${OpenMP_CXX_FLAGS}")
endif()
if(TAUT_HAS_ONEDNN)
  string(APPEND pc_libs " -ldnnl")
endif()
if(TAUT_HAS_ZLIB)
  string(APPEND pc_libs " -lz")
endif()
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/taut.pc.in taut.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/taut.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
