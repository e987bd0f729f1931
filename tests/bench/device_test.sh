# bench/device.sh on a GPU, a build and programs that are played here: what fails and what takes too long is reported
# and stops nothing else, one file has it all, and without a GPU nothing is run.
set -eu
command -v python3 > /dev/null || { echo "there is no python3"; exit 77; }
script=$TAUT_SOURCE_DIR/bench/device.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1 HOME="$work" TAUT_BUILD_DIR="$work/build" TAUT_DATA_DIR="$work" TAUT_PYTORCH_PYTHON=none PATH="$work/bin:$PATH"
results=$work/new/results.md

fail() {
  echo "device_test: $1" >&2
  sed 's/^/    /' "$work/log" "$results" >&2 || true
  exit 1
}
program() {  # FILE: from the standard input
  mkdir -p "$(dirname "$work/$1")"
  cat > "$work/$1"
  chmod +x "$work/$1"
}
run() {  # STATUS
  status=0
  sh "$script" "$results" > "$work/log" 2>&1 || status=$?
  [ $status -eq "$1" ] || fail "ends with status $status, not $1"
}
reports() { grep -q -e "$1" "$results" || fail "the results lack '$1'"; }

printf '#!/bin/sh\nexit 9\n' | program bin/nvidia-smi
run 77
grep -q 'no GPU' "$work/log" || fail 'it does not say that there is no GPU'
[ ! -e "$results" ] || fail 'there are results without a GPU'

printf '#!/bin/sh\necho "NVIDIA Loom 9"\n' | program bin/nvidia-smi
printf '#!/bin/sh\n' | program bin/cmake
printf '#!/bin/sh\necho "a kernel is wrong"\nexit 3\n' | program build/tests/cuda_device_test
printf '#!/bin/sh\necho "test accuracy 97%% by $*"\n' | program build/examples/mnist
cp "$work/build/examples/mnist" "$work/build/examples/cifar10"
program build/bench/worker_cuda << 'WORKER'
#!/usr/bin/env python3
import json, sys
for line in sys.stdin:
    count = json.loads(line).get("count", 1)
    print(json.dumps({"seconds": 0.5, "losses": [2.0] * count, "logits": [1.0], "peak": 1e6}, separators=(",", ":")), flush=True)
WORKER

run 1
reports '^# Taut on NVIDIA Loom 9'
reports '^| configuration | passed |'
reports '^| suite of operators | FAILED with status 3 |'
reports '^a kernel is wrong'
reports '^| MNIST, an epoch | passed |'
reports "accuracy 97% by --device cuda --epochs 1 .*--data $work/mnist"
reports '^mnist-mlp: 10 losses from 2.0 to 2.0'
reports '^| frost-resnet20 | passed |'
reports '^PyTorch is not there'
reports '^### cifar-resnet18 on a GPU'
reports '^| \*\*taut tf32\*\* |'

[ -s "${results%.md}.json" ] || fail 'all measurements are not beside the results'

# A network that has not learnt is told apart.
printf '#!/bin/sh\necho "test accuracy 11%% by $*"\n' | program build/examples/cifar10
run 1
reports '^| CIFAR-10, an epoch | FAILED with status 1 |'
reports '^expected a test accuracy of 25% at least'

# One that hangs leaves no time for the others here.
printf '#!/bin/sh\nsleep 60\n' | program build/examples/mnist
printf '#!/bin/sh\n' | program build/tests/cuda_device_test
TAUT_DEVICE_SECONDS=6
export TAUT_DEVICE_SECONDS
run 1
reports '^| suite of operators | passed |'
reports '^| MNIST, an epoch | stopped after [1-6] s |'
reports '^| CIFAR-10, an epoch | not run: no time was left |'

# Losses that part are told apart.
program build/bench/worker_cuda << 'WORKER'
#!/usr/bin/env python3
import json, sys
loss = 2.0
for line in sys.stdin:
    request = json.loads(line)
    loss = 2.01 if request.get("device") == "cuda" else loss
    print(json.dumps({"losses": [2.0, loss]}, separators=(",", ":")), flush=True)
WORKER
! sh "$TAUT_SOURCE_DIR/bench/match_losses.sh" "$work/build/bench/worker_cuda" mnist-mlp 2 > "$work/log" ||
  fail 'other losses are not found'
grep -q 'at most 5.0e-03 of them apart' "$work/log" || fail 'it does not say how far losses are apart'
