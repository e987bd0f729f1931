#!/bin/sh
# Runs nvcc, and keeps what ptxas says of each kernel's registers beside the object, as OBJECT.ptxas, instead of
# showing it: tests/cuda/registers_test.sh reads it.
#
#     sh cuda/compile.sh nvcc ARGUMENTS... -o OBJECT
object=
previous=
for argument in "$@"; do
  [ "$previous" = -o ] && object=$argument
  previous=$argument
done
log=$object.log
"$@" >"$log" 2>&1
status=$?
usage='^ptxas info|^ *[0-9]+ bytes stack frame'
grep -E "$usage" "$log" >"$object.ptxas"
grep -vE "$usage" "$log" >&2
rm -f "$log"
exit $status
