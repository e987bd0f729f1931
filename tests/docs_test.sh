#!/bin/sh
# Compiles the code blocks of README.md and docs/*.md, so that they cannot rot. The convention for writers:
#
#   ```cpp        with `int main`: a whole program, compiled and run on its own;
#   ```cpp        otherwise: declarations. Those of one document make up one source file, in order, behind
#                 `#include <taut/taut.hpp>` and `using namespace taut;`, so later blocks may use earlier ones;
#   ```cpp body   statements: the same, as the body of a function of their own;
#   ```text       as the next block after a whole program: what it prints, to the letter.
#
# The programs of a document run in its order in one folder, so that a later one may read what an earlier one writes.
# Other code (shell, output, what must not compile) goes into blocks of another language. Compiler messages give the
# document's own lines.
set -eu
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$TAUT_SOURCE_DIR"

compile() {
  "$CXX" -std=c++20 -I"$TAUT_SOURCE_DIR/include" "$@"
}

failures=0
blocks=0
for document in README.md docs/*.md; do
  [ -e "$document" ] || continue
  work=$directory/$(basename "$document" .md)
  mkdir "$work"
  awk -v document="$document" -v work="$work" '
    function finish(   file) {
      if (text ~ /int main\(/) {
        program = sprintf("%s/program_%05d", work, start)
        file = program ".cpp"
        printf "#line %d \"%s\"\n%s", start, document, text > file
        close(file)
        return
      }
      file = work "/declarations.cpp"
      if (!declared++) print "#include <taut/taut.hpp>\nusing namespace taut;" > file
      if (body) printf "void block_at_line_%d() {\n", start > file
      printf "#line %d \"%s\"\n%s", start, document, text > file
      if (body) print "}" > file
    }
    !fenced && /^```/ {
      output = ($1 == "```text" && program != "") ? program ".expected" : ""
      program = ""
      fenced = 1; code = ($1 == "```cpp"); body = ($2 == "body"); start = NR + 1; text = ""
      next
    }
    fenced && /^```/ {
      if (code) { finish(); count++ }
      if (output != "") { printf "%s", text > output; close(output) }
      fenced = 0
      next
    }
    fenced { text = text $0 "\n" }
    END { print count + 0 > (work "/count") }
  ' "$document"
  blocks=$((blocks + $(cat "$work/count")))

  if [ -e "$work/declarations.cpp" ] && ! compile -c -o /dev/null "$work/declarations.cpp"; then
    failures=$((failures + 1))
  fi
  for program in "$work"/program_*.cpp; do
    [ -e "$program" ] || continue
    line=$(basename "$program" .cpp | sed 's/program_0*//')
    expected=${program%.cpp}.expected
    if ! compile "$program" -o "$work/program" || ! (cd "$work" && ./program >printed); then
      echo "$document: the program at line $line fails"
      failures=$((failures + 1))
    elif [ -e "$expected" ] && ! diff "$expected" "$work/printed"; then
      echo "$document: the program at line $line does not print the block after it"
      failures=$((failures + 1))
    fi
  done
done

echo "$blocks code blocks, $failures failures"
[ "$blocks" -gt 0 ] || exit 77
[ "$failures" -eq 0 ]
