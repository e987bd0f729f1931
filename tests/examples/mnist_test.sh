#!/bin/sh
# Runs the MNIST example as users do, right and wrong, on a small data set made here: what it prints, saves and loads
# again, that a run can be repeated, on the emulated GPU too, and what it says of every bad input. Where TAUT_DATA_DIR has the real MNIST, an
# epoch on that too.
set -eu
program=$TAUT_BUILD_DIR/examples/mnist
[ -x "$program" ] || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
  echo "mnist_test: $1" >&2
  for file in output errors; do sed "s/^/$file: /" "$file" >&2; done
  exit 1
}

# mnist OPTIONS...: leaves `output`, `errors` and $status.
mnist() {
  status=0
  "$program" "$@" >output 2>errors || status=$?
}

succeeds() {
  mnist "$@"
  [ $status -eq 0 ] && [ ! -s errors ] || fail "'$*' fails with status $status"
}

says() { grep -qF -- "$1" output || fail "the output lacks '$1'"; }

# refuses TEXT OPTIONS...: exit status 1 and one line (or $lines) that has TEXT, before any training.
lines=1
refuses() {
  text=$1
  shift
  mnist "$@"
  [ $status -eq 1 ] || fail "'$*' ends with status $status, not 1"
  [ "$(wc -l <errors)" -eq $lines ] || fail "'$*' does not give $lines lines of errors"
  head -n 1 errors | grep -q '^mnist: ' && grep -qF -- "$text" errors || fail "'$*' does not say '$text'"
  ! grep -q '^epoch' output || fail "'$*' trains first"
}

# Class k is the k-th stripe of a black image in white.
image() {
  head -c $((56 * $1)) /dev/zero
  head -c 56 /dev/zero | tr '\0' '\377'
  head -c $((728 - 56 * $1)) /dev/zero
}

# write_split PREFIX COUNT COUNT_IN_OCTAL: so many images, ten classes in turn.
write_split() {
  printf "\\0\\0\\10\\3\\0\\0\\0\\$3\\0\\0\\0\\34\\0\\0\\0\\34" >"$1-images-idx3-ubyte"
  printf "\\0\\0\\10\\1\\0\\0\\0\\$3" >"$1-labels-idx1-ubyte"
  for _ in $(seq $(($2 / 10))); do
    cat ten_images >>"$1-images-idx3-ubyte"
    printf '\0\1\2\3\4\5\6\7\10\11' >>"$1-labels-idx1-ubyte"
  done
}

mkdir set
for class in 0 1 2 3 4 5 6 7 8 9; do image $class; done >ten_images
write_split set/train 100 144
write_split set/t10k 20 24
learn="--data set --batch-size 10 --lr 0.1 --workers 0"

# Training: what it prints and leaves behind.
succeeds $learn --epochs 8 --save model.safetensors --csv run.csv
says 'data: set, 100 images to train, 20 to test'
says '109386 parameters'
says 'hidden1.weight  [128, 784]  100352'
says 'epoch 1/8  loss 2.'
says 'test accuracy 100%'
[ "$(wc -l <run.csv)" -eq 9 ] || fail 'the table has not a row an epoch'
rates=$(cut -d , -f 6 run.csv | uniq | tr '\n' ' ')
[ "$rates" = 'learning_rate 0.1 0.05 ' ] || fail "the learning rates are $rates"
tail -n 1 output >trained

# Its weights, loaded again, achieve the same, and are the start of more training.
succeeds --data set --load model.safetensors --epochs 0
tail -n 1 output | cmp -s - trained || fail 'loaded weights achieve something else'
! grep -q '^epoch' output || fail '--epochs 0 trains'
succeeds $learn --load model.safetensors --epochs 1
says '  accuracy 100.00%  test loss'  # in the first epoch, which from random weights begins far lower

# The same seed gives the same numbers, with any number of workers; another seed gives others.
numbers() { cut -d , -f 1-6 "$1"; }
succeeds $learn --epochs 8 --csv again.csv --workers 2
numbers run.csv >numbers
numbers again.csv | cmp -s - numbers || fail 'a second run gives other numbers'
succeeds $learn --epochs 8 --csv other.csv --seed 2
! numbers other.csv | cmp -s - numbers || fail 'another seed gives the same numbers'

for optimizer in adam adamw; do
  succeeds --data set --batch-size 10 --optimizer $optimizer --lr=0.01 --epochs 5
  says 'test accuracy 100%'
done

# Data that nobody named: data/mnist first, then Debian's package.
mkdir data
mv set data/mnist
succeeds --epochs 0
says 'data: data/mnist, 100'
mv data/mnist set
if [ -e /usr/share/datasets/fashion-mnist ]; then
  succeeds --epochs 0
  says 'data: /usr/share/datasets/fashion-mnist, 60000'
else
  refuses 'sh examples/download.sh mnist data/mnist'
fi

succeeds --help
for option in data device epochs batch-size optimizer lr seed threads workers load save csv; do says "--$option "; done
says '--epochs INT=10'
says 'passes over the training images; 0 only measures'

# Bad options.
refuses '--epochs: expected a whole number of at least 0, got -3' --epochs -3
refuses '--epochs: expected a whole number of at least 0, got 2.5' --epochs=2.5
refuses '--epochs: expected a whole number of at least 0, got 99999999999' --epochs 99999999999
refuses '--epochs: expected a whole number of at least 0, got nothing' --epochs ''
refuses '--batch-size: expected a whole number of at least 1, got 0' --batch-size 0
for rate in nan -1 0 inf 1e99 fast; do refuses "--lr: expected a number above 0, got $rate" --lr $rate; done
refuses '--optimizer: expected one of sgd, adam, adamw, got rmsprop' --optimizer rmsprop
refuses '--threads: expected a whole number of at least 0, got -1' --threads -1
refuses '--workers: expected a whole number of at least 0, got -1' --workers -1
refuses '--seed: expected a whole number of at least 0, got -1' --seed -1
refuses '--seed: 1 required UINT missing' --seed
refuses 'not expected: 3 --epoch; --help lists' --epoch 3
refuses 'not expected: again; --help lists' again

# A GPU that is not there is an error, whether or not Taut was built for one.
refuses '--device: expected one of cpu, cuda, got tpu' --device tpu
nvidia-smi -L >/dev/null 2>&1 || refuses 'run with --device cpu' --data set --device cuda

# On the emulated GPU, training gives the same numbers up to rounding, and weights go from one device to the other.
emulated=$TAUT_BUILD_DIR/tests/emulated_mnist
if [ -x "$emulated" ]; then
  program=$emulated
  succeeds $learn --epochs 2 --device cpu --csv cpu.csv --save cpu.safetensors
  succeeds $learn --epochs 2 --device cuda --csv cuda.csv --save cuda.safetensors
  says 'epoch 2/2'
  paste -d , cpu.csv cuda.csv | awk -F , '
    function apart(a, b) { d = a - b; return d > 1e-4 * a || -d > 1e-4 * a }
    NR > 1 && (apart($2, $10) || apart($4, $12) || $5 != $13 || $2 <= 0) { wrong = 1 }
    END { exit wrong || NR != 3 || NF != 16 }' || fail 'the emulated GPU trains otherwise than the CPU'
  for trained_on in cpu cuda; do
    for device in cpu cuda; do
      succeeds --data set --load $trained_on.safetensors --epochs 0 --device $device
      sed -n 's/^test loss \([^,]*\),.*/\1/p' output >loss_$device
    done
    paste loss_cpu loss_cuda | awk '{ exit !($1 > 0 && ($1 - $2) ^ 2 < (1e-3 * $1) ^ 2) }' ||
      fail 'weights are others on the other device'
  done
  TAUT_EMULATOR_DEVICES=0
  export TAUT_EMULATOR_DEVICES
  refuses 'no device was found, run with --device cpu' --data set --device cuda
  unset TAUT_EMULATOR_DEVICES
  program=$TAUT_BUILD_DIR/examples/mnist
fi

# Bad data.
refuses 'sh examples/download.sh mnist nowhere' --data nowhere
refuses 'dataset-fashion-mnist' --data nowhere
mkdir damaged
cp set/* damaged
head -c 5000 set/train-images-idx3-ubyte >damaged/train-images-idx3-ubyte
refuses 'damaged/train-images-idx3-ubyte (byte 5000): idx: the file is truncated' --data damaged

# Bad weights. The misshaped file is a header's length, the header and the numbers.
refuses 'nowhere.safetensors: cannot open' --data set --load nowhere.safetensors
head -c 1000 model.safetensors >short.safetensors
refuses 'short.safetensors' --data set --load short.safetensors
header='{"hidden1.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}'
{
  printf "\\$(printf %o ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header"
  head -c 24 /dev/zero
} >misshaped.safetensors
lines=3  # the first line, what is missing, what has another shape
refuses "'hidden1.weight' ([2, 3] in the file, [128, 784] in the model)" --data set --load misshaped.safetensors
lines=1

# Places that cannot be written to are found before the training, and a training that fails leaves the old file.
refuses 'nowhere/model.safetensors: cannot write' $learn --save nowhere/model.safetensors
refuses 'set: cannot write: not a regular file' $learn --save set
refuses 'nowhere/run.csv: csv log: cannot open' $learn --csv nowhere/run.csv
cp model.safetensors copy.safetensors
refuses 'fit: the loss is' $learn --lr 1e30 --epochs 1 --save model.safetensors
cmp -s model.safetensors copy.safetensors || fail 'a training that failed changed the saved weights'
[ -z "$(ls ./*.tmp-* 2>/dev/null)" ] || fail 'temporary files are left'

if [ -n "${TAUT_DATA_DIR-}" ] && [ -e "$TAUT_DATA_DIR/mnist" ]; then
  succeeds --data "$TAUT_DATA_DIR/mnist" --epochs 1
  tail -n 1 output | awk '{ exit !($NF + 0 > 92) }' || fail 'an epoch on MNIST achieves less than 92%'
fi
