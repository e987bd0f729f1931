#!/bin/sh
# Runs the CIFAR-10 example and the one that predicts as users do, right and wrong, on a small data set made here: what
# they print, that training goes on from a checkpoint as if it had not stopped, that the emulated GPU computes the same,
# and what they say of bad input.
set -eu
program=$TAUT_BUILD_DIR/examples/cifar10
predict=$TAUT_BUILD_DIR/examples/predict
[ -x "$program" ] && [ -x "$predict" ] || exit 77
export TAUT_CONV_ALGORITHM=direct  # bitwise the same in each run
pictures=$TAUT_SOURCE_DIR/tests/fixtures/images
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
  echo "cifar10_test: $1" >&2
  for file in output errors; do sed "s/^/$file: /" "$file" >&2; done
  exit 1
}

succeeds() {
  "$@" >output 2>errors && [ ! -s errors ] || fail "'$*' fails"
}

says() { grep -qF -- "$1" output || fail "the output lacks '$1'"; }

# refuses TEXT COMMAND...: exit status 1 and a line that has TEXT.
refuses() {
  text=$1
  shift
  status=0
  "$@" >output 2>errors || status=$?
  [ $status -eq 1 ] || fail "'$*' ends with status $status, not 1"
  head -n 1 errors | grep -qF -- "$text" || fail "'$*' does not say '$text'"
}

# Class k is of one grey, from dark to light.
for class in 0 1 2 3 4 5 6 7 8 9; do
  printf "\\$(printf '%o' "$class")"
  head -c 3072 /dev/zero | tr '\0' "\\$(printf '%o' $((10 + 25 * class)))"
done >ten
mkdir set
for i in 1 2 3 4 5; do cat ten ten >set/data_batch_$i.bin; done
cat ten ten >set/test_batch.bin
learn="$program --model lenet --data set --batch-size 10 --lr 0.05 --weight-decay 0 --schedule constant --workers 0"

# Training, stopped and resumed, is the same as training at once.
succeeds $learn --epochs 4 --csv once.csv
says 'data: set, 100 images to train, 20 to test'
says '62006 parameters'
succeeds $learn --epochs 2 --csv first.csv --save model.safetensors
succeeds $learn --epochs 4 --csv second.csv --resume model.safetensors --save resumed.safetensors
says 'going on after epoch 2'
numbers() { cut -d , -f 1-6 "$@"; }
numbers once.csv >expected
{ numbers first.csv && numbers second.csv | tail -n +2; } | cmp -s - expected || fail 'resuming gives other numbers'

# With normalisation and an average of the weights too; the table goes on.
learn20="$program --model resnet20 --data set --batch-size 50 --workers 0 --ema 0.9 --schedule constant"
succeeds $learn20 --epochs 2 --csv once.csv
tail -n 1 output >averaged
succeeds $learn20 --epochs 1 --csv both.csv --save half.safetensors
succeeds $learn20 --epochs 2 --csv both.csv --resume half.safetensors
tail -n 1 output | cmp -s - averaged || fail 'the average is another one after resuming'
numbers once.csv >expected
numbers both.csv | cmp -s - expected || fail 'resuming a normalised network gives other numbers'

# Augmentation does not depend on the number of workers.
succeeds $learn --augment --label-smoothing 0.1 --ema 0.9 --epochs 1 --csv none.csv
says 'test accuracy of the averaged weights'
succeeds $learn --augment --label-smoothing 0.1 --epochs 1 --csv two.csv --workers 2
numbers none.csv >expected
numbers two.csv | cmp -s - expected || fail 'two workers give other numbers'

succeeds $program --model resnet20 --data set --batch-size 50 --epochs 1 --raw --save net.safetensors --report report.html \
  --tensorboard events
grep -q 'resnet20 on CIFAR-10' report.html && grep -q 'airplane' report.html && grep -q 'data:image' report.html ||
  fail 'the report lacks title, classes or images'
ls events/events.out.tfevents.* >/dev/null || fail 'there are no events for TensorBoard'
says 'layer2.0.downsample.1.running_var'

# Predictions: five classes with probabilities that fall.
for picture in photo.png grey_alpha.png rgb16.png one_pixel.jpg; do
  picture=$pictures/$picture
  succeeds "$predict" "$picture" net.safetensors
  [ "$(wc -l <output)" -eq 5 ] || fail 'there are not five classes'
  sort -rn output | cmp -s - output || fail 'the classes are not in order'
done

# On the emulated GPU, which augments by itself, training gives the same numbers up to rounding, and so do predictions.
emulated=$TAUT_BUILD_DIR/tests/emulated_cifar10
if [ -x "$emulated" ]; then
  for device in cpu cuda; do
    succeeds "$emulated" ${learn#"$program"} --augment --epochs 2 --device $device --csv $device.csv
    succeeds "$TAUT_BUILD_DIR/tests/emulated_predict" "$pictures/photo.png" net.safetensors --device $device
    cp output predicted_by_$device
  done
  paste -d , cpu.csv cuda.csv | awk -F , '
    function apart(a, b) { d = a - b; return d > 1e-4 * a || -d > 1e-4 * a }
    NR > 1 && (apart($2, $10) || apart($4, $12) || $2 <= 0) { wrong = 1 }
    END { exit wrong || NR != 3 || NF != 16 }' || fail 'the emulated GPU trains otherwise than the CPU'
  paste predicted_by_cpu predicted_by_cuda | awk '
    { d = $1 - $3 }
    d > 0.02 || -d > 0.02 || $2 != $4 { wrong = 1 }
    END { exit wrong || NR != 5 }' || fail 'the emulated GPU predicts something else than the CPU'
fi

refuses "'pixels' must be 'normalized', got 'raw'" $program --model resnet20 --data set --resume net.safetensors
mkdir taken.ema
refuses 'taken.ema: cannot write' $learn --ema 0.9 --save taken
refuses 'expected one of resnet18' $program --model vgg
if ! nvidia-smi -L >/dev/null 2>&1; then
  refuses 'run with --device cpu' $learn --device cuda
  refuses 'run with --device cpu' "$predict" "$pictures/photo.png" net.safetensors --device cuda
fi
refuses 'sh examples/download.sh cifar-10 nowhere' $program --data nowhere
refuses '--label-smoothing: expected a number from 0 to 1, got 2' $program --label-smoothing 2
refuses 'nowhere.safetensors: cannot open' $learn --resume nowhere.safetensors
refuses "the file's tensors are not the model's" $program --model resnet20 --data set --resume resumed.safetensors
head -c 5000 set/test_batch.bin >short && cp -r set cut && cp short cut/test_batch.bin
refuses 'cut/test_batch.bin (byte 5000): Cifar10::load: the file is truncated' $program --data cut
printf '\014' | dd of=cut/data_batch_3.bin bs=1 conv=notrunc 2>dd.log && cp set/test_batch.bin cut
refuses 'cut/data_batch_3.bin (byte 0): Cifar10::load: expected a label from 0 to 9, got 12' $program --data cut
refuses 'empty.png' "$predict" "$pictures/empty.png" net.safetensors
refuses 'huge.png' "$predict" "$pictures/huge.png" net.safetensors
refuses 'picture is required' "$predict"
