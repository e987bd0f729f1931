#!/bin/sh
# The headers alone are enough: no build system, macro or compiled library, only a C++20 compiler and RapidJSON.
set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
"$CXX" -std=c++20 -I"$TAUT_SOURCE_DIR/include" "$TAUT_SOURCE_DIR/tests/consumer/main.cpp" -o "$directory/plain"
"$directory/plain"
