#!/bin/sh
# Fetches a data set from its public home, and checks every byte of it.
set -eu

usage() {
  cat <<'END'
usage: sh examples/download.sh mnist|fashion-mnist|cifar-10 [DIRECTORY]

Downloads the data set into DIRECTORY (data/mnist, data/fashion-mnist or data/cifar-10 unless given):
  mnist          11 MB, 70,000 grey images of handwritten digits
  fashion-mnist  31 MB, 70,000 grey images of clothes, in the same format
  cifar-10      170 MB, 60,000 colour images; the archive is also unpacked, to DIRECTORY/cifar-10-batches-bin

Files that are there already and intact are not downloaded again. Every file is checked against its SHA-256,
and has its final name only once it is whole.

TAUT_DATA_URL=URL takes the files from another place, for instance a mirror: URL/train-images-idx3-ubyte.gz
END
}

# The SHA-256 and the name of each file.
files_of() {
  case $1 in
    mnist) cat <<'END' ;;
440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609  train-images-idx3-ubyte.gz
3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c  train-labels-idx1-ubyte.gz
8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6  t10k-images-idx3-ubyte.gz
f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6  t10k-labels-idx1-ubyte.gz
END
    fashion-mnist) cat <<'END' ;;
3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84  train-images-idx3-ubyte.gz
a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845  train-labels-idx1-ubyte.gz
346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073  t10k-images-idx3-ubyte.gz
67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5  t10k-labels-idx1-ubyte.gz
END
    cifar-10) cat <<'END' ;;
c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd  cifar-10-binary.tar.gz
END
  esac
}

# Where the files are, the first choice first.
homes_of() {
  case $1 in
    mnist) echo https://storage.googleapis.com/cvdf-datasets/mnist \
                https://ossci-datasets.s3.amazonaws.com/mnist ;;
    fashion-mnist) echo http://fashion-mnist.s3-website.eu-central-1.amazonaws.com \
                        https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion ;;
    cifar-10) echo https://www.cs.toronto.edu/~kriz ;;
  esac
}

say() { printf '%s\n' "download.sh: $*" >&2; }
fail() { say "$@"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

sha256_of() {
  if has sha256sum; then sha256sum <"$1"
  elif has shasum; then shasum -a 256 <"$1"
  else openssl dgst -sha256 -r <"$1"
  fi | cut -d ' ' -f 1
}

is_intact() { [ -f "$1" ] && [ "$(sha256_of "$1")" = "$2" ]; }

# fetch URL FILE. The tools' own error messages, and on a terminal their progress, are shown.
fetch() {
  if has curl; then
    if [ -t 2 ]; then shown=--progress-bar; else shown=--silent; fi
    curl --fail --location --retry 2 --connect-timeout 20 --show-error "$shown" --output "$2" "$1"
  else
    if [ -t 2 ]; then shown=--progress=bar; else shown=--no-verbose; fi
    wget --tries=3 --timeout=60 "$shown" -O "$2" "$1"
  fi </dev/null
}

# obtain SUM NAME: the file NAME in $directory, from the first of $homes that has it intact.
obtain() {
  target=$directory/$2
  if is_intact "$target" "$1"; then
    say "$target is already there"
    return
  fi
  if [ -e "$target" ]; then say "$target is damaged or another file, and will be replaced"; fi
  for home in $homes; do
    say "fetching $home/$2"
    if ! fetch "$home/$2" "$partial"; then
      say "cannot fetch $home/$2"
    elif is_intact "$partial" "$1"; then
      mv -f "$partial" "$target"
      return
    else
      say "$home/$2 is damaged or another file: expected the SHA-256 $1, got $(sha256_of "$partial")"
    fi
    rm -f "$partial"
  done
  fail "could not get $2. Try again later, or set TAUT_DATA_URL to a place that has it; files that are" \
       "complete will not be fetched again"
}

# Unpacks CIFAR-10's archive, whole or not at all.
unpack_cifar() {
  if [ -d "$directory/cifar-10-batches-bin" ]; then return; fi
  mkdir "$partial"
  tar -xzf "$directory/cifar-10-binary.tar.gz" -C "$partial" || fail "cannot unpack the archive in $directory"
  mv "$partial/cifar-10-batches-bin" "$directory/"
  rm -rf "$partial"
}

case ${1-} in
  -h | --help) usage; exit 0 ;;
  mnist | fashion-mnist | cifar-10) set_name=$1 ;;
  '') usage >&2; exit 2 ;;
  *) say "there is no data set '$1'"; usage >&2; exit 2 ;;
esac
if [ $# -gt 2 ]; then say "too many arguments"; usage >&2; exit 2; fi
has curl || has wget || fail "needs curl or wget (Debian: apt-get install curl)"
has sha256sum || has shasum || has openssl || fail "needs sha256sum, shasum or openssl"

directory=${2:-data/$set_name}
homes=${TAUT_DATA_URL:-$(homes_of "$set_name")}
homes=${homes%/}
mkdir -p "$directory" || fail "cannot make the directory $directory"
partial=$directory/.download-$$
trap 'rm -rf "$partial"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

while read -r sum name; do obtain "$sum" "$name"; done <<END
$(files_of "$set_name")
END
if [ "$set_name" = cifar-10 ]; then unpack_cifar; fi
say "$set_name is complete in $directory"
