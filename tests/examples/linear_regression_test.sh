#!/bin/sh
# Runs the example and checks what it says: the losses fall, and the line is the one that made the points, on the
# emulated GPU too; and what it says of a device that is not there.
set -eu
program=$TAUT_BUILD_DIR/examples/linear_regression
emulated=$TAUT_BUILD_DIR/tests/emulated_linear_regression
[ -x "$program" ] || exit 77

# finds_the_line COMMAND...
finds_the_line() {
  "$@" | awk '
    { print }
    /^step [0-9]+: loss / { if (losses++ && $NF > 1.0001 * loss) wrong = "a loss rises"; loss = $NF }
    /^y = / { found = 1; weight = $3; bias = $6 + 0; if ($4 != "x" || $5 != "+") wrong = "the line is misprinted" }
    END {
      if (losses != 5) wrong = "expected 5 losses"
      if (!(loss > 0.005 && loss < 0.02)) wrong = "the loss is not that of the noise, 0.01"
      if (!found || (weight - 3) ^ 2 > 0.03 ^ 2 || (bias - 1) ^ 2 > 0.03 ^ 2) wrong = "the line is wrong"
      if (wrong) { print "linear_regression_test: " wrong; exit 1 }
    }'
}

# refuses TEXT COMMAND...: it fails with an error that has the text.
refuses() {
  text=$1
  shift
  if errors=$("$@" 2>&1 >/dev/null) || ! echo "$errors" | grep '^linear_regression: ' | grep -qF -- "$text"; then
    echo "linear_regression_test: '$*' does not say '$text' but '$errors'"
    exit 1
  fi
}

finds_the_line "$program"
refuses '--device: expected one of cpu, cuda, got tpu' "$program" --device tpu
nvidia-smi -L >/dev/null 2>&1 || refuses 'run with --device cpu' "$program" --device cuda
if [ -x "$emulated" ]; then finds_the_line "$emulated" --device cuda; fi
