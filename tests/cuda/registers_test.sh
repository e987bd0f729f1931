#!/bin/sh
# Prints how many registers each kernel of taut::cuda takes on each architecture that it was compiled for, and fails
# if any spills them to memory, or if there is no report of a file for one of TAUT_CUDA_ARCHITECTURES ("80 90"). A stack
# frame alone is no spill: sines keep the digits of 2/pi for large arguments there.
set -eu
reports=$(find "$TAUT_BUILD_DIR/cuda" -name '*.ptxas' 2>/dev/null || true)
if [ -z "$reports" ]; then
  echo "taut::cuda was not built"
  exit 77
fi
for source in "$TAUT_SOURCE_DIR"/cuda/*.cu; do
  report=$(find "$TAUT_BUILD_DIR/cuda" -name "${source##*/}.o.ptxas")
  for arch in ${TAUT_CUDA_ARCHITECTURES:-[0-9]+}; do
    if ! grep -qE "Compiling entry function .* for 'sm_$arch'" "${report:-/dev/null}"; then
      echo "cuda/${source##*/}: there is no report for sm_$arch"
      failed=1
    fi
  done
done
# shellcheck disable=SC2086  # one report a word
awk '
  /Compiling entry function/ { split($0, quoted, "\047"); kernel = quoted[2]; arch = quoted[4] }
  /bytes stack frame/ { stack = $1; spills = $5 + $9 }
  /Used [0-9]+ registers/ {
    match($0, /Used [0-9]+/)
    printf "%s %3d registers, %4d bytes of stack, %4d bytes spilled: %s\n", arch, substr($0, RSTART + 5, RLENGTH - 5), stack,
      spills, kernel
    ++kernels
    if (spills > 0) ++spilling
  }
  END {
    printf "%d kernels, of which %d spill\n", kernels, spilling
    exit kernels == 0 || spilling > 0
  }' $reports >"$TAUT_BUILD_DIR/cuda/registers.txt" || failed=1
if command -v c++filt >/dev/null; then c++filt; else cat; fi <"$TAUT_BUILD_DIR/cuda/registers.txt"
exit ${failed:-0}
