#!/bin/sh
# Installs what is missing, builds everything and runs the whole test suite.
#
#     sh tests/run.sh [OPTIONS OF CTEST, such as -R matmul]
#
# Tests of real data run where TAUT_DATA_DIR names a directory that has them, such as MNIST in mnist/.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
sh "$root/cmake/setup.sh"
sh "$root/cmake/build.sh"
cd "$root"
exec ctest --preset release --parallel "${CTEST_PARALLEL_LEVEL:-$(nproc)}" "$@"
