#!/bin/sh
# Installs what is missing, builds the MNIST example and trains it.
#
#     sh examples/quickstart.sh [OPTIONS OF THE EXAMPLE, such as --epochs 3 or --help]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
sh "$root/cmake/setup.sh"
sh "$root/cmake/build.sh" --target mnist
exec "$root/build/release/examples/mnist" "$@"
