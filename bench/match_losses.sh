#!/bin/sh
# Whether training on the GPU gives the losses of the processor, from the same weights on the same batches.
#
#     bench/match_losses.sh WORKER WORKLOAD [STEPS [BATCH]]
#
# Prints how far they are apart, and fails if that is more than a thousandth.
set -eu
worker=$1 workload=$2 steps=${3:-20}
batch=${4:+,\"batch\":$4}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# ask FORMAT VALUES...: answers to requests, unless one is an error.
ask() {
  # shellcheck disable=SC2059  # the format is what varies
  printf "$@" | "$worker" >"$directory/answer"
  ! grep '"error"' "$directory/answer" >&2
}

ask '{"do":"exchange","workload":"%s","directory":"%s","count":%s%s}\n' "$workload" "$directory" "$steps" "$batch"
for device in cpu cuda; do
  ask '{"do":"open","workload":"%s","exchange":"%s","threads":%s,"rung":"f32","device":"%s"}\n{"do":"steps","count":%s}\n' \
    "$workload" "$directory" "$(nproc)" "$device" "$steps"
  sed -n 's/.*"losses":\[\([^]]*\)\].*/\1/p' "$directory/answer" >"$directory/$device"
done
paste -d , "$directory/cpu" "$directory/cuda" | awk -F , -v workload="$workload" -v steps="$steps" '
  { for (i = 1; i <= steps; ++i) {
      apart = ($i - $(i + steps)) / $i
      if (apart < 0) apart = -apart
      if (!(apart <= most)) most = apart
    } }
  END {
    printf "%s: %d losses from %s to %s, those on the GPU at most %.1e of them apart\n", workload, steps, $1, $steps, most
    exit !(NF == 2 * steps && most <= 1e-3)
  }'
