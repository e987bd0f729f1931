#!/bin/sh
# Runs the example and checks what it says: the losses fall, and the line is the one that made the points.
set -eu
program=$TAUT_BUILD_DIR/examples/linear_regression
[ -x "$program" ] || exit 77

"$program" | awk '
  { print }
  /^step [0-9]+: loss / { if (losses++ && $NF > 1.0001 * loss) wrong = "a loss rises"; loss = $NF }
  /^y = / { found = 1; weight = $3; bias = $6 + 0; if ($4 != "x" || $5 != "+") wrong = "the line is misprinted" }
  END {
    if (losses != 5) wrong = "expected 5 losses"
    if (!(loss > 0.005 && loss < 0.02)) wrong = "the loss is not that of the noise, 0.01"
    if (!found || (weight - 3) ^ 2 > 0.03 ^ 2 || (bias - 1) ^ 2 > 0.03 ^ 2) wrong = "the line is wrong"
    if (wrong) { print "linear_regression_test: " wrong; exit 1 }
  }'
