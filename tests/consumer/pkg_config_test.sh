#!/bin/sh
# A program built against the installed library with nothing but pkg-config.
set -eu
command -v pkg-config >/dev/null || exit 77
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

PKG_CONFIG_PATH=$(dirname "$(find "$TAUT_BUILD_DIR/tests/consumer/prefix" -name taut.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046  # the flags are separate words
"$CXX" -std=c++20 $(pkg-config --cflags taut) "$TAUT_SOURCE_DIR/tests/consumer/main.cpp" $(pkg-config --libs taut) \
  -o "$directory/consumer"
"$directory/consumer"
