#!/bin/sh
# Tests examples/download.sh against a web server on this machine, with small files in place of the real ones:
# a copy of the script has their checksums. Exits 77 (skipped) without python3, which serves them.
set -eu
script=${TAUT_SOURCE_DIR:-$(dirname "$0")/../..}/examples/download.sh
command -v python3 >/dev/null || { echo "python3 is not here: skipped"; exit 77; }

work=$(mktemp -d)
server=
clean_up() {
  if [ -n "$server" ]; then kill "$server"; fi
  rm -rf "$work"
}
trap clean_up EXIT

# expect WHAT COMMAND...: the command succeeds.
expect() {
  what=$1
  shift
  if ! "$@"; then
    echo "FAILED: $what"
    sed 's/^/    /' "$work/log"
    exit 1
  fi
  echo "ok: $what"
}
# run STATUS ARGUMENTS...: the script exits with this status; its messages go to $work/log.
run() {
  wanted=$1
  shift
  status=0
  sh "$work/download.sh" "$@" >"$work/log" 2>&1 || status=$?
  [ "$status" -eq "$wanted" ]
}
says() { grep -q -e "$1" "$work/log"; }
never_says() { ! says "$1"; }
same() { cmp -s "$1" "$2"; }
holds() { [ "$(find "$1" -mindepth 1 -maxdepth 1 | wc -l)" -eq "$2" ]; }  # DIRECTORY COUNT

images=train-images-idx3-ubyte.gz
names="t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz"
archive=cifar-10-binary.tar.gz
mkdir "$work/www" "$work/www/cifar-10-batches-bin"
for name in $names; do echo "the content of $name" >"$work/www/$name"; done
echo "images" >"$work/www/cifar-10-batches-bin/data_batch_1.bin"
tar -czf "$work/www/$archive" -C "$work/www" cifar-10-batches-bin

cp "$script" "$work/download.sh"
for name in $names $archive; do
  sum=$(sha256sum <"$work/www/$name" | cut -d ' ' -f 1)
  sed "s/^[0-9a-f]\{64\}  $name\$/$sum  $name/" "$work/download.sh" >"$work/edited"
  mv "$work/edited" "$work/download.sh"
done

# The server picks a free port and says which.
: >"$work/server"
python3 -u -m http.server --bind 127.0.0.1 --directory "$work/www" 0 >"$work/server" 2>/dev/null &
server=$!
port=
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$work/server")
  if [ -n "$port" ]; then break; fi
  sleep 0.5
done
expect "the server is up" test -n "$port"
TAUT_DATA_URL=http://127.0.0.1:$port
export TAUT_DATA_URL
out=$work/out/mnist

expect "good files are fetched" run 0 mnist "$out"
for name in $names; do expect "$name is whole" same "$work/www/$name" "$out/$name"; done
expect "nothing else is left" holds "$out" 4

expect "a second run succeeds" run 0 mnist "$out"
expect "it says that the files are there" says "$images is already there"
expect "it fetches nothing" never_says fetching

echo "damaged" >"$out/$images"
expect "a damaged file is replaced" run 0 mnist "$out"
expect "by the whole one" same "$work/www/$images" "$out/$images"
expect "and the user told" says "$images is damaged or another file, and will be replaced"

echo "corrupt" >"$work/www/$images"
expect "a corrupt download fails" run 1 mnist "$work/corrupt"
expect "naming both checksums" says "$images is damaged or another file: expected the SHA-256 [0-9a-f]\{64\}, got [0-9a-f]"
expect "and is not kept" test ! -e "$work/corrupt/$images"
rm "$out/$images"
expect "it fails for a directory that has the rest" run 1 mnist "$out"
expect "whose files stay" test -e "$out/train-labels-idx1-ubyte.gz"

rm "$work/www/$images"
expect "a missing file fails" run 1 mnist "$work/missing"
expect "naming its address" says "cannot fetch $TAUT_DATA_URL/$images"
expect "and saying what to do" says "set TAUT_DATA_URL"
expect "leaving nothing" holds "$work/missing" 0

echo "the content of $images" >"$work/www/$images"
expect "a run after that completes" run 0 mnist "$work/missing"
TAUT_DATA_URL=$TAUT_DATA_URL/
expect "a slash behind the address does no harm" run 0 fashion-mnist "$work/slash"
TAUT_DATA_URL=${TAUT_DATA_URL%/}

if command -v wget >/dev/null; then
  mkdir "$work/bin"
  for tool in sh wget sha256sum cut cat mkdir mv rm; do ln -s "$(command -v $tool)" "$work/bin/$tool"; done
  all_tools=$PATH
  PATH=$work/bin
  run 0 mnist "$work/wget" || status=failed
  PATH=$all_tools
  expect "wget does without curl" test "$status" = 0
  expect "as well" holds "$work/wget" 4
fi

expect "CIFAR-10 is fetched" run 0 cifar-10 "$work/cifar"
expect "and unpacked" same "$work/www/cifar-10-batches-bin/data_batch_1.bin" \
  "$work/cifar/cifar-10-batches-bin/data_batch_1.bin"
expect "nothing else is left" holds "$work/cifar" 2
expect "a second run succeeds" run 0 cifar-10 "$work/cifar"
expect "and fetches nothing" never_says fetching

cd "$work"
expect "the default directory is data/ and the name" run 0 mnist
expect "below the current one" test -e "$work/data/mnist/$images"

expect "an unknown name is a usage error" run 2 imagenet
expect "which names it" says "there is no data set 'imagenet'"
expect "and shows the usage" says "usage: "
expect "so is no name" run 2
expect "so is an argument too many" run 2 mnist a b
expect "--help succeeds" run 0 --help
expect "a directory that cannot be made fails" run 1 mnist "$work/download.sh/x"
expect "naming it" says "cannot make the directory $work/download.sh/x"

kill "$server"
wait "$server" 2>/dev/null || true
server=
expect "a server that is down fails" run 1 mnist "$work/down"
expect "naming the address" says "cannot fetch $TAUT_DATA_URL/$images"

# The real checksums, where the real files are at hand: they count as already there.
if [ -d "${TAUT_DATA_DIR-}/mnist" ]; then
  cp -r "$TAUT_DATA_DIR/mnist" "$work/real"
  cp "$script" "$work/download.sh"
  expect "the published files of MNIST are recognised" run 0 mnist "$work/real"
fi
