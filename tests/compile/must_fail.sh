#!/bin/sh
# must_fail.sh SOURCE COMPILER FLAGS...
#
# Passes if SOURCE does not compile, for the reason that its first line gives as `// expect: TEXT`: the compiler's
# output contains TEXT, and no complaint of the compiler about itself. With -DCONTROL the same source must compile, so
# that nothing else in it is wrong.
set -u
export LC_ALL=C
source=$1
shift

expected=$(sed -n '1s|^// expect: ||p' "$source")
if [ -z "$expected" ]; then
  echo "$source: the first line must read '// expect: TEXT'"
  exit 1
fi

if output=$("$@" -c -o /dev/null "$source" 2>&1); then
  echo "$source compiles, but must not"
  exit 1
fi
if ! printf '%s\n' "$output" | grep -qF -- "$expected"; then
  printf '%s\n' "$output"
  echo "$source does not compile, but no diagnostic says: $expected"
  exit 1
fi
if printf '%s\n' "$output" | grep -E 'sorry, unimplemented|internal compiler error'; then
  echo "$source does not compile, but the compiler speaks of itself"
  exit 1
fi

if ! "$@" -DCONTROL -c -o /dev/null "$source"; then
  echo "$source does not compile with -DCONTROL either: something else in it is wrong"
  exit 1
fi
