# The worker that bench/compare drives: answers requests, and mistakes too, and goes on.
set -eu
worker=$TAUT_BUILD_DIR/bench/worker
[ -x "$worker" ] || { echo "benchmarks are not built"; exit 77; }
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# Two workers start from the same files, so their losses are the same; so are those in double, but for rounding.
exchange() { printf '{"do":"exchange","workload":"%s","directory":"%s","count":4,"batch":%s}\n' "$1" "$directory" "$2"; }
open() { printf '{"do":"open","workload":"%s","exchange":"%s","threads":1,"rung":"%s"}\n' "$1" "$directory" "$2"; }
steps='{"do":"steps","count":5}'
losses() { sed -n 's/.*"losses":\[\(.*\)\].*/\1/p'; }

exchange mnist-mlp 8 | "$worker" | grep -qx '{}'
[ -s "$directory/weights.safetensors" ]
[ -s "$directory/batches.safetensors" ]
first=$({ open mnist-mlp f32; echo "$steps"; } | "$worker" | losses)
again=$({ open mnist-mlp f32; echo "$steps"; } | "$worker" | losses)
double=$({ open mnist-mlp f64; echo "$steps"; } | "$worker" | losses)
[ -n "$first" ]
[ "$first" = "$again" ]
[ "$double" != "$first" ]
printf '%s\n%s\n' "$first" "$double" | awk -F, '{ for (i = 1; i <= NF; ++i) loss[NR, i] = $i }
  END { for (i = 1; i <= NF; ++i) { d = loss[1, i] - loss[2, i]; if (d > 1e-5 || d < -1e-5) exit 1 }; exit NF != 5 }'

# Inference gives ten logits a sample, and folding normalisation changes them by rounding only.
exchange frost-resnet20 2 | "$worker" > /dev/null
infer='{"do":"infer","batch":3,"count":1}'
for rung in f32 folded; do
  { open frost-resnet20 $rung; echo "$infer"; } | "$worker" | sed -n 's/.*"logits":\[\(.*\)\].*/\1/p' > "$directory/$rung"
done
paste -d, "$directory/f32" "$directory/folded" | awk -F, '{ for (i = 1; i <= 30; ++i) {
  d = $i - $(i + 30); if (d > 1e-3 || d < -1e-3) exit 1 }; exit NF != 60 }'

# A profile adds up the step's operations and says what the machine's limits ask for.
{ open mnist-mlp profiled; exchange mnist-mlp 8; open mnist-mlp profiled
  printf '{"do":"profile","count":2,"trace":"%s/trace.json"}\n' "$directory"; } | "$worker" > "$directory/profile"
grep -q '"floor":' "$directory/profile"
grep -q 'linear' "$directory/profile"
grep -q traceEvents "$directory/trace.json"

# The worker of the emulated GPU computes the same there, in every precision, and tells the device's memory.
emulated=$TAUT_BUILD_DIR/tests/emulated_worker
on_gpu() { open "$1" "$2" | sed 's/}$/,"device":"cuda"}/'; }
if [ -x "$emulated" ]; then
  exchange mnist-mlp 8 | "$worker" > /dev/null
  for rung in f32 tf32 f32+graph bf16 bf16+graph; do
    { on_gpu mnist-mlp $rung; echo "$steps"; echo '{"do":"memory"}'; } | "$emulated" > "$directory/$rung"
    losses < "$directory/$rung" | sed "s/^/$first,/" | awk -F, -v most="$(case $rung in bf16*) echo 2e-2 ;; *) echo 1e-5 ;; esac)" '{
      for (i = 1; i <= 5; ++i) { d = $i - $(i + 5); if (d > most || d < -most) wrong = 1 }; exit wrong || NF != 10 }'
    sed -n 's/.*"peak":\([0-9.]*\)}/\1/p' "$directory/$rung" | awk '{ exit !($1 > 109386 * 2 && $1 < 1e8) }'
  done
  exchange frost-resnet20 2 | "$worker" > /dev/null
  for rung in f32 f32+folded bf16+folded; do
    { on_gpu frost-resnet20 $rung; echo "$infer"; } | "$emulated" | sed -n 's/.*"logits":\[\(.*\)\].*/\1/p' > "$directory/gpu"
    paste -d, "$directory/folded" "$directory/gpu" | awk -F, -v most=$([ $rung = bf16+folded ] && echo 0.1 || echo 1e-3) '{
      for (i = 1; i <= 30; ++i) { d = $i - $(i + 30); if (d > most || d < -most) wrong = 1 }; exit wrong || NF != 60 }'
  done
  sh "$TAUT_SOURCE_DIR/bench/match_losses.sh" "$emulated" frost-resnet20 2 2 > /dev/null
  on_gpu mnist-mlp f64 | "$emulated" | grep -q "no rung 'f64' on the GPU"
  on_gpu mnist-mlp f32 | TAUT_EMULATOR_DEVICES=0 "$emulated" | grep -q 'no device was found'
fi

# Mistakes are answers that say what is wrong.
expect() {  # PATTERN REQUEST...
  pattern=$1
  shift
  printf '%s\n' "$@" | "$worker" | tail -n 1 | grep -q "\"error\":\".*$pattern" || { echo "no '$pattern' for: $*"; exit 1; }
}
expect 'JSON object' 'no json'
expect "text 'do'" '{}'
expect "no request 'dance'" '{"do":"dance"}'
expect "no workload 'x'" '{"do":"exchange","workload":"x","directory":"/","count":1}'
expect "'open' first" "$steps"
expect "whole number 'count'" '{"do":"exchange","workload":"mnist-mlp","directory":"/"}'
expect 'nowhere' '{"do":"open","workload":"mnist-mlp","exchange":"/nowhere","threads":1,"rung":"f32"}'
expect "no rung 'f16'" "$(open mnist-mlp f16)"
expect "no device 'tpu'" "$(on_gpu mnist-mlp f32 | sed 's/cuda/tpu/')"
expect 'set_threads' "$(open mnist-mlp f32 | sed 's/"threads":1/"threads":0/')"
