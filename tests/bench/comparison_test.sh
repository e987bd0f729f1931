# What bench/compare computes, and its treatment of workers that fail; needs no PyTorch.
set -eu
command -v python3 > /dev/null || { echo "there is no python3"; exit 77; }
PYTHONDONTWRITEBYTECODE=1 python3 "$TAUT_SOURCE_DIR/tests/bench/comparison_test.py"
