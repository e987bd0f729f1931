#!/bin/sh
# Checks examples/tutorial.cpp: it needs nothing but a compiler, compiles without a warning, its results are right by
# its own checks, those checks can fail, and a wrong shape does not compile.
#
#     [CXX=clang++-19] sh tests/examples/tutorial_test.sh
set -eu

source=$(cd "$(dirname "$0")/../.." && pwd)/examples/tutorial.cpp
compiler=${CXX:-g++}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "tutorial_test: $1" >&2
  exit 1
}

compile() {  # FILE PROGRAM
  $compiler -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Werror "$1" -o "$2"
}

# Copies the tutorial with one line changed, and insists that the change found its place.
plant() {  # SED_EXPRESSION COPY
  sed "$1" "$source" >"$2"
  ! cmp -s "$source" "$2" || fail "nothing to change by $1"
}

compile "$source" "$folder/tutorial" || fail "the tutorial does not compile"
"$folder/tutorial" >"$folder/output" || fail "the tutorial finds its own results wrong"
grep -q 'All results are right' "$folder/output" || fail "the tutorial does not say that all is right"

# A wrong derivative and a wrong gradient rule end in a nonzero exit.
plant 's/(1.0 - t \* t) \* a.slope/(1.0 + t * t) * a.slope/; s/matmul(transpose(a), g)/2.0 * matmul(transpose(a), g)/' \
  "$folder/planted.cpp"
compile "$folder/planted.cpp" "$folder/planted" || fail "the planted faults do not compile"
if "$folder/planted" >"$folder/planted.output"; then fail "planted faults go unnoticed"; fi
for name in 'slope of tanh' 'dloss/dweight'; do
  grep -q "WRONG.*$name" "$folder/planted.output" || fail "a planted fault goes unnoticed by the check of the $name"
done

# What section 6 tells the reader to try: a wrong shape does not compile, and the compiler names the rule.
plant 's/shapes(ShapeTensor{{64, 784}})/shapes(ShapeTensor{{64, 783}})/' "$folder/misshaped.cpp"
if compile "$folder/misshaped.cpp" "$folder/misshaped" 2>"$folder/diagnostic"; then fail "a wrong shape compiles"; fi
grep -q 'matmul: the inner dimensions differ' "$folder/diagnostic" || fail "the diagnostic does not name the rule"

echo "tutorial_test: passed with $compiler"
