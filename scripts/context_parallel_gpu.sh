#!/usr/bin/env bash
# Context parallel on a machine with several GPUs: right on small sequences, then times and bytes beside one GPU, and
# PyTorch's context_parallel in the same run. For a machine that has GPUs but not what a build needs:
#
#   scripts/context_parallel_gpu.sh pack BUILD FOLDER    where it was built: collects programs and libraries
#   scripts/context_parallel_gpu.sh FOLDER [PART]...     on the machine with the GPUs: runs them
#
# Parts: check, figures, peer (these three without one: 4 minutes). TOKENS (131072), HEADS (16), BUDGET_MS (2000) and
# OUT (a folder for logs) change them. NCCL is the loader's, TILEWRIGHT_NCCL's, or the wheel's that PyTorch brings.
set -u

if [ "${1:-}" = pack ]; then
  set -e
  [ $# -eq 3 ] || { echo "usage: $0 pack BUILD FOLDER" >&2; exit 2; }
  mkdir -p "$3/lib"
  root=$(cd "$(dirname "$0")/.." && pwd)
  cp "$2/cli/tilewright" "$root/bench/context_parallel.py" "$0" "$3/"
  ldd "$2/cli/tilewright" | awk '/libfmt|libcrypto|libpng|libfreetype|libbrotli|libz\./ {print $3}' |
    while read -r library; do cp -L "$library" "$3/lib/"; done
  git -C "$root" describe --always --dirty --abbrev=7 --exclude '*' >"$3/COMMIT"
  ls -la "$3"
  exit 0
fi

[ $# -ge 1 ] && [ -d "$1" ] || { sed -n 2,10p "$0"; exit 2; }
folder=$(cd "$1" && pwd)
shift
parts=" ${*:-check figures peer} "
logs=${OUT:-$(mktemp -d)}
mkdir -p "$logs"
work=$(mktemp -d)
export TILEWRIGHT_CACHE=$work/cache
failed=0

# A library that the machine has is better than one that was carried along.
for library in "$folder"/lib/*; do
  [ -e "$library" ] || continue
  if ! ldconfig -p 2>/dev/null | grep -q "$(basename "$library") "; then
    mkdir -p "$work/lib" && cp "$library" "$work/lib/"
  fi
done
chmod +x "$folder/tilewright"
tilewright() { LD_LIBRARY_PATH="$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$folder/tilewright" "$@"; }
wants() { [[ $parts == *" $1 "* ]]; }

# The wheel that PyTorch brings, where neither the loader nor the user names one.
if [ -z "${TILEWRIGHT_NCCL:-}" ]; then
  wheel=$(python3 - <<'PYTHON' 2>/dev/null
import glob, os, sysconfig
found = [p for key in ("purelib", "platlib") for p in glob.glob(os.path.join(sysconfig.get_paths()[key], "nvidia/**/libnccl.so.2"), recursive=True)]
print(found[0] if found else "")
PYTHON
  )
  [ -n "$wheel" ] && export TILEWRIGHT_NCCL=$wheel
fi

# step NAME LIMIT COMMAND...
step() {
  local name=$1 limit=$2 status
  shift 2
  echo "== $name"
  export -f tilewright
  export folder work
  timeout --kill-after=20 "$limit" bash -c '"$@"' step "$@" >"$logs/$name.log" 2>&1
  status=$?
  cat "$logs/$name.log"
  [ $status -eq 0 ] || { echo "FAILED ($status): $name"; failed=1; }
}

echo "$(date -u '+%Y-%m-%d %H:%M UTC'), commit $(cat "$folder/COMMIT" 2>/dev/null || echo unknown), NCCL ${TILEWRIGHT_NCCL:-of the loader}"
nvidia-smi --query-gpu=index,name,driver_version --format=csv,noheader 2>/dev/null
nvidia-smi topo -m 2>/dev/null | head -n 8

# Ragged shards; the suite compares every element of out and lse with one GPU's.
if wants check; then
  step check_small 120 tilewright bench --suite context_parallel --q-len 8192 --heads 4 --kv-heads 2 --budget-ms 50
  step check_ragged 120 tilewright bench --suite context_parallel --q-len 20011 --heads 3 --head-dim 64 --budget-ms 50
fi
if wants figures; then
  step figures 240 tilewright bench --suite context_parallel --q-len "${TOKENS:-131072}" --heads "${HEADS:-16}" \
    --budget-ms "${BUDGET_MS:-2000}"
  step figures_json 240 tilewright bench --suite context_parallel --q-len "${TOKENS:-131072}" --heads "${HEADS:-16}" \
    --budget-ms "${BUDGET_MS:-2000}" --json
fi
if wants peer; then
  step peer 240 python3 "$folder/context_parallel.py" --tokens "${TOKENS:-131072}" --heads "${HEADS:-16}"
fi
echo "logs: $logs"
exit $failed
