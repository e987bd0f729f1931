#!/bin/sh
# Installs the packages that Taut's programs are built from, where Debian or Ubuntu lacks them. Elsewhere it lists
# them and stops. Where nothing is missing it says nothing and takes no time.
#
#     sh cmake/setup.sh [MORE PACKAGES...]
#
# shellcheck disable=SC2086  # lists of packages are meant to be split
set -eu

required="g++ cmake make rapidjson-dev"
# Each of these makes something faster or saves a download; a release that lacks one still builds.
optional="libdnnl-dev libxsimd-dev zlib1g-dev libstb-dev libcli11-dev libgtest-dev libbenchmark-dev ninja-build pkg-config dataset-fashion-mnist"

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  cat >&2 <<END
This is neither Debian nor Ubuntu, so nothing was installed. Install what these packages hold:
  required: $required $*
  optional: $optional
Then build the example by hand:
  cmake --preset release
  cmake --build --preset release --target mnist
  build/release/examples/mnist --help
END
  exit 1
fi

# Prints those of its arguments that are not installed.
missing() {
  for package in "$@"; do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) || status=
    [ "$status" = installed ] || printf '%s ' "$package"
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    echo "Run this as root, then try again: $*" >&2
    exit 1
  fi
}

install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}

required=$(missing $required "$@")
optional=$(missing $optional)
[ -n "$required$optional" ] || exit 0
if [ -z "$required" ] && [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
  echo "Going on without the optional packages $optional"
  exit 0
fi

# Without package lists apt knows no package: fetch them once.
known() {
  apt-cache madison cmake $optional 2>/dev/null | awk '{ print $1 }'
}
known=$(known)
if [ -z "$known" ]; then
  as_root apt-get update -q
  known=$(known)
fi
available=
for package in $optional; do
  if printf '%s\n' "$known" | grep -qxF "$package"; then
    available="$available$package "
  else
    echo "This release has no package $package; going on without it"
  fi
done
[ -n "$required$available" ] || exit 0

echo "Installing $required$available"
if ! install $required $available; then
  # Old package lists, or one optional package that cannot be had: try each on its own.
  as_root apt-get update -q
  [ -z "$required" ] || install $required
  for package in $available; do
    install "$package" || echo "Could not install $package; going on without it"
  done
fi
