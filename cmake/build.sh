#!/bin/sh
# Configures and builds the preset `release` with every core, printing what was found and otherwise just errors.
#
#     sh cmake/build.sh [OPTIONS OF cmake --build, such as --target mnist]
set -eu
cd "$(dirname "$0")/.."

# CMake keeps the generator of a build tree; only a new one may take Ninja.
if [ ! -e build/release/CMakeCache.txt ] && command -v ninja >/dev/null; then
  export CMAKE_GENERATOR=Ninja
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake --preset release >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
sed -n '/Taut/,/Configuring done/{/Configuring/!s/^-- //p}' "$log"
cmake --build --preset release --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" "$@"
