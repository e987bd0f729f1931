# What only Taut's own tests, examples and benchmarks use: from the system, else fetched at a pinned version.
if(TAUT_BUILD_TESTS)
  set(INSTALL_GTEST OFF)
  taut_declare(googletest https://github.com/google/googletest/archive/refs/tags/v1.14.0.tar.gz
    8ad598c73ad796e0d8280b082cebd82a630d73e73cd3c70057938a6501bba5d7 FIND_PACKAGE_ARGS NAMES GTest)
  FetchContent_MakeAvailable(googletest)
endif()

if(TAUT_BUILD_EXAMPLES)
  taut_declare(cli11 https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.4.2.tar.gz
    f2d893a65c3b1324c50d4e682c0cdc021dd0477ae2c048544f39eed6654b699a FIND_PACKAGE_ARGS NAMES CLI11)
  FetchContent_MakeAvailable(cli11)
endif()

if(TAUT_BUILD_BENCH)
  set(BENCHMARK_ENABLE_TESTING OFF)
  set(BENCHMARK_ENABLE_INSTALL OFF)
  # Only the programs that measure single operators need it: where it cannot be had, they are left out.
  find_package(benchmark QUIET)
  if(NOT benchmark_FOUND)
    taut_download(benchmark AUTO https://github.com/google/benchmark/archive/refs/tags/v1.8.4.tar.gz)
    if(benchmark_archive)
      taut_declare(benchmark ${benchmark_archive} 3e7059b6b11fb1bbe28e33e02519398ca94c1818874ebed18e504dc6f709be45)
      FetchContent_MakeAvailable(benchmark)
    endif()
  endif()
endif()
