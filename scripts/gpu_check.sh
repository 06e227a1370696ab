#!/usr/bin/env bash
# Everything that needs a GPU, with time limits, and a table at the end. For a machine that has a GPU
# but not what a build needs:
#
#   scripts/gpu_check.sh pack BUILD FOLDER   where it was built: collects the programs and libraries
#   scripts/gpu_check.sh FOLDER              on the machine with the GPU: runs them
#
# The battery and the tests compare with kernels for the CPU, so a C++ compiler must be there.
# CHECK_SECONDS=N (default 240) limits the battery; the rest takes at most as long again.
set -u
cd "$(dirname "$0")/.."

if [ "${1:-}" = pack ]; then
  set -e
  [ $# -eq 3 ] || { echo "usage: $0 pack BUILD FOLDER" >&2; exit 2; }
  mkdir -p "$3/lib"
  for program in cli/tilewright tests/battery/battery tests/gpu/gpu_tests; do
    cp "$2/$program" "$3/"
    ldd "$2/$program" | awk '/libfmt|libcrypto|libCatch2|libpng/ {print $3}' |
      while read -r library; do cp -L "$library" "$3/lib/"; done
  done
  ls -la "$3" "$3/lib"
  exit 0
fi

[ $# -eq 1 ] && [ -d "$1" ] || { sed -n 2,9p "$0"; exit 2; }
folder=$(cd "$1" && pwd)
logs=$(mktemp -d)
seconds=${CHECK_SECONDS:-240}
table=()
export TILEWRIGHT_CACHE=$logs/cache TILEWRIGHT_TEST_ROOT=$PWD TILEWRIGHT_TEST_DEVICE=cuda
if ! command -v "${TILEWRIGHT_CXX:-c++}" >/dev/null; then
  for compiler in g++ clang++; do
    command -v $compiler >/dev/null && export TILEWRIGHT_CXX=$compiler && break
  done
fi

# A library that the machine has is better than one that was carried along.
for library in "$folder"/lib/*; do
  [ -e "$library" ] || continue
  if ! ldconfig -p 2>/dev/null | grep -q "$(basename "$library") "; then
    mkdir -p "$logs/lib" && cp "$library" "$logs/lib/"
  fi
done
ours() { LD_LIBRARY_PATH="$logs/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"; }
chmod +x "$folder"/{tilewright,battery,gpu_tests} 2>/dev/null

# record NAME STATUS LOG: a line of the table
record() {
  local verdict=ok
  [ "$2" -eq 0 ] || verdict="FAILED ($2)"
  [ "$2" -eq 124 ] && verdict="TIMED OUT"
  grep -q '^\[SKIP\]' "$3" && verdict="SKIPPED"
  table+=("$(printf '%-34s %-12s %s' "$1" "$verdict" "$(tail -n 1 "$3" | cut -c 1-110)")")
}

# step NAME LIMIT COMMAND...: runs, shows the end of the log
step() {
  local name=$1 limit=$2 log status
  shift 2
  log=$logs/${name//[^a-z0-9]/_}.log
  echo "== $name"
  ours timeout --kill-after=5 "$limit" "$@" >"$log" 2>&1
  status=$?
  grep -v '^[[:space:]]*$' "$log" | tail -n "${LINES_SHOWN:-12}"
  record "$name" $status "$log"
}

step doctor 30 "$folder/tilewright" doctor
LINES_SHOWN=40 step "gpu tests" 120 "$folder/gpu_tests" -w NoTests

# Kernels for the reference are compiled by the system's compiler, so several processes share it out.
echo "== battery"
parts=$(( $(nproc) / 2 ))
[ "$parts" -lt 1 ] && parts=1
[ "$parts" -gt 8 ] && parts=8
pids=()
for ((part = 0; part < parts; ++part)); do
  TILEWRIGHT_TEST_PART=$part/$parts ours timeout --kill-after=5 "$seconds" "$folder/battery" \
    >"$logs/battery_$part.log" 2>&1 &
  pids+=($!)
done
for ((part = 0; part < parts; ++part)); do
  wait "${pids[$part]}"
  record "battery, part $part of $parts" $? "$logs/battery_$part.log"
done
cat "$logs"/battery_*.log | grep -v '^[[:space:]]*$' | grep -A6 -E 'WRONG|error|hint' | head -n 60
cat "$logs"/battery_*.log | grep -E 'worst' | sort | tail -n 80

sanitizer=$(command -v compute-sanitizer || ls -d /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1)
sample='gpu: forward gives*,gpu: a block mask*,gpu: tensors off*,gpu: a mask made*'
for tool in memcheck initcheck synccheck racecheck; do
  if [ -n "$sanitizer" ]; then
    step "$tool" 45 "$sanitizer" --tool $tool --error-exitcode 9 "$folder/gpu_tests" "$sample"
    grep -E '^========= .*(error|hazard|Invalid|Uninit|Race|Barrier)' \
      "$logs/$tool.log" | sort | uniq -c | sort -rn | head -n 8
  else
    table+=("$(printf '%-34s %-12s' "$tool" "not there")")
  fi
done

size=(--batch 2 --heads 16 --q-len 8192 --budget-ms 300)
LINES_SHOWN=30 step "bench mods bf16 128" 100 \
  "$folder/tilewright" bench --suite mods --dtype bf16 --head-dim 128 "${size[@]}"
LINES_SHOWN=30 step "bench masks" 60 "$folder/tilewright" bench --suite masks --q-len 16384 --budget-ms 200
LINES_SHOWN=30 step "bench launch" 40 "$folder/tilewright" bench --suite launch
LINES_SHOWN=30 step "bench compile" 60 "$folder/tilewright" bench --suite compile
step "run, new snippet" 60 "$folder/tilewright" run examples/alibi_documents.json --device cuda \
  --inputs random:1,8,2,1024,1024 --outputs "$logs/out.safetensors"
step "run, kernel on disk" 60 "$folder/tilewright" run examples/alibi_documents.json --device cuda \
  --inputs random:1,8,2,1024,1024 --outputs "$logs/out.safetensors"
step "check" 60 "$folder/tilewright" check examples/alibi_documents.json --device cuda \
  --inputs random:2,4,2,257,511

echo
printf '%-34s %-12s %s\n' what verdict "last line"
printf '%s\n' "${table[@]}"
printf '%s\n' "${table[@]}" | grep -qE 'FAILED|TIMED OUT' && exit 1
exit 0
