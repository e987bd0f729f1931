#!/bin/sh
# Checks that code which a document quotes still stands in the file that it was taken from. A writer puts the line
# `<!-- from PATH -->` before a code block of README.md or docs/*.md; the block must then be found in PATH as it is.
set -eu
cd "$TAUT_SOURCE_DIR"
awk '
  function check(   source, line) {
    source = "\n"
    while ((getline line < path) > 0) source = source line "\n"
    close(path)
    count++
    if (index(source, "\n" text)) return
    printf "%s:%d: this code is not in %s\n", FILENAME, start, path
    failures++
  }
  /^<!-- from [^ ]+ -->$/ { path = $3; next }
  !fenced && /^```/ { fenced = 1; start = FNR + 1; text = ""; next }
  fenced && /^```/ { fenced = 0; if (path != "") check(); path = ""; next }
  fenced { text = text $0 "\n" }
  END { printf "%d quotes, %d failures\n", count, failures; exit failures > 0 }
' README.md docs/*.md
