#!/bin/sh
# Shows what Taut does on this machine's GPU, within eight minutes: builds for it, runs the suite of all operators,
# trains the MNIST and CIFAR-10 examples for an epoch, holds losses against the processor's and the four workloads
# against PyTorch. Writes one file.
#
#     bench/device.sh [RESULTS]        bench/results/<gpu>-device.md unless given; all measurements beside it in .json
#
# TAUT_DATA_DIR          holds mnist/ and cifar-10-batches-bin/; without it CIFAR-10 is drawn, and MNIST left out
# TAUT_PYTORCH_PYTHON    a Python that has PyTorch for CUDA, or none; unless set, that of bench/compare, or else python3
# TAUT_BUILD_DIR         build tree: build/cuda unless set
# TAUT_DEVICE_SECONDS    limit of all stages together: 470 unless set
#
# What fails or takes too long is reported, and the next stage runs. Exit status: 0 if all passed, 1 if something
# failed, 77 without a GPU. Where there is no network, CMAKE_PREFIX_PATH names a folder that has what is not installed of
# RapidJSON, GoogleTest and CLI11, or FETCHCONTENT_SOURCE_DIR_<NAME> the source of each.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
if ! nvidia-smi -L >/dev/null 2>&1; then
  echo "device.sh: nvidia-smi finds no GPU on this machine: nothing was run"
  exit 77
fi
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
name=$(echo "$gpu" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9-')
results=${1:-$root/bench/results/$name-device.md}
build=${TAUT_BUILD_DIR:-$root/build/cuda}
data=${TAUT_DATA_DIR:-}
begin=$(date +%s)
end=$((begin + ${TAUT_DEVICE_SECONDS:-470}))
work=$(mktemp -d)
mkdir -p "$(dirname "$results")"
trap 'rm -rf "$work"' EXIT
: >"$work/stages"
: >"$work/sections"
failed=0

# Puts the file together from what there is so far, so that nothing is lost if this is stopped.
write_results() {
  {
    printf '# Taut on %s\n\n' "$gpu"
    nvidia-smi --query-gpu=driver_version,memory.total,clocks.max.sm --format=csv 2>/dev/null | sed 's/^/    /'
    printf '    %s, %s cores\n\n' "$(uname -sr)" "$(nproc)"
    printf '| stage | result | seconds |\n|---|---|---|\n'
    cat "$work/stages" "$work/sections"
    if [ -e "$work/compare/device.md" ]; then printf '\n' && sed 's/^#/##/' "$work/compare/device.md"; fi
  } >"$results"
  if [ -e "$work/compare/device.json" ]; then cp "$work/compare/device.json" "${results%.md}.json"; fi
}

# stage NAME LIMIT COMMAND...: runs it for LIMIT seconds at most, and for no longer than is left of all.
stage() {
  what=$1 limit=$2
  shift 2
  started=$(date +%s)
  [ "$limit" -le $((end - started)) ] || limit=$((end - started))
  printf '%s: ' "$what"
  if [ "$limit" -le 0 ]; then
    result="not run: no time was left" failed=1
    : >"$work/log"
  else
    status=0
    timeout -k 5 "$limit" "$@" >"$work/log" 2>&1 </dev/null || status=$?
    case $status in
      0) result="passed" ;;
      124 | 137) result="stopped after $limit s" failed=1 ;;
      *) result="FAILED with status $status" failed=1 ;;
    esac
  fi
  seconds=$(($(date +%s) - started))
  echo "$result, $seconds s"
  echo "| $what | $result | $seconds |" >>"$work/stages"
  {
    printf '\n## %s\n\n```\n' "$what"
    tr '\r' '\n' <"$work/log" | tail -n 25 | cut -c 1-400
    printf '```\n'
  } >>"$work/sections"
  write_results
}

# reaches PERCENT COMMAND...: the command succeeds and the last test accuracy that it prints is at least that.
cat >"$work/reaches" <<'REACHES'
least=$1 log=$0.log
shift
"$@" >"$log" 2>&1
status=$?
cat "$log"
[ $status -eq 0 ] || exit $status
sed -n 's/.*test accuracy \([0-9.]*\)%.*/\1/p' "$log" | tail -n 1 |
  awk -v least="$least" '{ found = 1 } $1 < least { low = 1 } END { if (low || !found) { print "expected a test accuracy of " least "% at least"; exit 1 } }'
REACHES

# The library, then what stands on it.
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
stage 'configuration' 60 cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DTAUT_NATIVE=ON -DTAUT_CUDA=ON \
  -DCMAKE_CUDA_ARCHITECTURES=native
stage 'build: library and programs' 220 cmake --build "$build" --target mnist cifar10 bench_worker_cuda
stage 'build: suite of operators' 200 cmake --build "$build" --target cuda_device_test

stage 'suite of operators' 90 "$build/tests/cuda_device_test" --gtest_brief=1
for workload in mnist-mlp frost-resnet20; do
  stage "losses of $workload" 20 sh "$root/bench/match_losses.sh" "$build/bench/worker_cuda" $workload 10
done
if [ -n "$data" ]; then
  stage 'MNIST, an epoch' 40 sh "$work/reaches" 90 "$build/examples/mnist" --device cuda --epochs 1 --workers 4 \
    --data "$data/mnist"
fi
stage 'CIFAR-10, an epoch' 60 sh "$work/reaches" 25 "$build/examples/cifar10" --device cuda --epochs 1 --augment \
  --workers 8 --report '' ${data:+--data "$data/cifar-10-batches-bin"}

# The four workloads: first against what starts fast, then, as long as there is time, against CUDA graphs as well.
python=none
for candidate in ${TAUT_PYTORCH_PYTHON:-"$HOME/.cache/taut/pytorch/bin/python" python3}; do
  if "$candidate" -c 'import torch, numpy, safetensors' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ "$python" = none ]; then
  echo "no PyTorch: TAUT_PYTORCH_PYTHON names a Python that has it. Its columns stay empty"
  printf '\nPyTorch is not there, so its columns are empty.\n' >>"$work/sections"
fi
graphs=compile-reduce-overhead+channels-last+fused
compare() {  # NAME LIMIT RUNGS...: of $workload
  stage_name=$1 stage_limit=$2
  shift 2
  stage "$stage_name" "$stage_limit" "$root/bench/compare" --device cuda --machine device --output "$work/compare" \
    --build "$build" --python "$python" --pairs 3 --seconds 0.1 --starts 1 --data '' --workloads "$workload" --rungs "$@"
}
workloads='mnist-mlp seed-resnet18 cifar-resnet18 frost-resnet20'
for workload in $workloads; do
  compare "$workload" 75 eager tf32+channels-last+fused bf16+channels-last+fused
done
if [ "$python" != none ]; then
  for workload in $workloads; do
    compare "$workload, with CUDA graphs" 150 eager $graphs bf16+$graphs
  done
fi

write_results
echo "written: $results"
exit $failed
