# Finds what Taut can use. Sets TAUT_HAS_<NAME> (1 or 0) and TAUT_LIBRARIES, what taut::taut links.
#
# Everything comes from the system first. What is missing is fetched at a pinned version: RapidJSON and the tools of
# our own programs always, the optional libraries only when asked for with TAUT_<NAME>=ON.
include(FetchContent)
list(PREPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)  # a project above this one links them through taut::taut
set(CMAKE_POLICY_VERSION_MINIMUM 3.5)  # some pinned versions name an older CMake than CMake 4 accepts

function(taut_declare name url sha256)
  FetchContent_Declare(${name} SYSTEM URL ${url} URL_HASH SHA256=${sha256} ${ARGN})
endfunction()

# Fetches a header-only library and gives it the name that find_package would. Its own build files are not run; its
# headers are installed beside Taut's.
function(taut_fetch_headers target name url sha256)
  message(STATUS "Fetching ${name}, which is not installed")
  taut_declare(${name} ${url} ${sha256} SOURCE_SUBDIR none)
  FetchContent_MakeAvailable(${name})
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} INTERFACE ${${name}_SOURCE_DIR}/include)
  if(TAUT_INSTALL)
    install(DIRECTORY ${${name}_SOURCE_DIR}/include/ TYPE INCLUDE)
  endif()
endfunction()

foreach(name ONEDNN OPENMP XSIMD ZLIB)
  set(TAUT_${name} AUTO CACHE STRING "AUTO (use it if installed), ON (insist) or OFF")
  set_property(CACHE TAUT_${name} PROPERTY STRINGS AUTO ON OFF)
  if(NOT TAUT_${name} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "TAUT_${name} is \"${TAUT_${name}}\": it must be AUTO, ON or OFF")
  endif()
  set(TAUT_HAS_${name} 0)
endforeach()

find_package(Threads REQUIRED)
find_package(RapidJSON QUIET MODULE)
if(NOT RapidJSON_FOUND)
  taut_fetch_headers(RapidJSON::RapidJSON rapidjson https://github.com/Tencent/rapidjson/archive/v1.1.0.tar.gz
    bf7ced29704a1e696fbccf2a2b4ea068e7774fa37f6d7dd4039d0787f8bed98e)
  set(RapidJSON_VERSION "1.1.0, fetched")
endif()
set(TAUT_LIBRARIES Threads::Threads RapidJSON::RapidJSON)

if(TAUT_OPENMP)
  find_package(OpenMP QUIET COMPONENTS CXX)
  if(OpenMP_CXX_FOUND)
    set(TAUT_HAS_OPENMP 1)
    list(APPEND TAUT_LIBRARIES OpenMP::OpenMP_CXX)
  elseif(TAUT_OPENMP STREQUAL "ON")
    message(FATAL_ERROR "TAUT_OPENMP=ON, but ${CMAKE_CXX_COMPILER} has no OpenMP; with clang install libomp-dev")
  endif()
endif()

if(TAUT_ZLIB)
  find_package(ZLIB QUIET)
  if(ZLIB_FOUND)
    set(TAUT_HAS_ZLIB 1)
    list(APPEND TAUT_LIBRARIES ZLIB::ZLIB)
  elseif(TAUT_ZLIB STREQUAL "ON")
    message(FATAL_ERROR "TAUT_ZLIB=ON, but zlib was not found; install zlib1g-dev")
  endif()
endif()

if(TAUT_XSIMD)
  find_package(xsimd QUIET MODULE)
  if(NOT xsimd_FOUND AND TAUT_XSIMD STREQUAL "ON")
    taut_fetch_headers(xsimd::xsimd xsimd https://github.com/xtensor-stack/xsimd/archive/refs/tags/13.0.0.tar.gz
      8bdbbad0c3e7afa38d88d0d484d70a1671a1d8aefff03f4223ab2eb6a41110a3)
    set(xsimd_VERSION "13.0.0, fetched")
  endif()
  if(TARGET xsimd::xsimd)
    set(TAUT_HAS_XSIMD 1)
    list(APPEND TAUT_LIBRARIES xsimd::xsimd)
  endif()
endif()

if(TAUT_ONEDNN)
  find_package(oneDNN QUIET MODULE)
  if(NOT oneDNN_FOUND AND TAUT_ONEDNN STREQUAL "ON")
    message(STATUS "Fetching oneDNN, which is not installed")
    set(DNNL_BUILD_TESTS OFF)
    set(DNNL_BUILD_EXAMPLES OFF)
    taut_declare(onednn https://github.com/oneapi-src/oneDNN/archive/refs/tags/v2.7.3.tar.gz
      a50993aa6265b799b040fe745e0010502f9f7103cc53a9525d59646aef006633)
    FetchContent_MakeAvailable(onednn)
    add_library(oneDNN::oneDNN INTERFACE IMPORTED GLOBAL)
    target_link_libraries(oneDNN::oneDNN INTERFACE dnnl)
    set(oneDNN_VERSION "2.7.3, fetched")
  endif()
  if(TARGET oneDNN::oneDNN)
    set(TAUT_HAS_ONEDNN 1)
    list(APPEND TAUT_LIBRARIES oneDNN::oneDNN)
  endif()
endif()

unset(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)  # CMake 3.25 mistakes it together with FIND_PACKAGE_ARGS
