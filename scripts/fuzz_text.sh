#!/usr/bin/env bash
# Builds the fuzzers of text and files (tests/fuzz/text) and runs them, two at a time, from a new seed.
#
#   scripts/fuzz_text.sh [SECONDS [TARGET...]]     20 seconds each, all of them
#   SEED=7 scripts/fuzz_text.sh 60 spec_reader
#
# Ends with status 1 where one of them finds something, and names the file to run it with again.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/dependencies.sh

seconds=${1:-20}
shift $(($# > 0 ? 1 : 0))
targets=("$@")
[ ${#targets[@]} -gt 0 ] ||
  targets=(template_engine spec_reader snippet_checker safetensors_reader cache_entry bundle_reader)
for target in "${targets[@]}"; do
  if [[ ! $seconds =~ ^[1-9][0-9]*$ || ! -d tests/fuzz/text/corpus/$target ]]; then
    echo "usage: scripts/fuzz_text.sh [SECONDS [TARGET...]], the targets are: $(ls tests/fuzz/text/corpus)" >&2
    exit 2
  fi
done
seed=${SEED:-$((RANDOM * 32768 + RANDOM + 1))}

install_missing "${BUILD_PACKAGES[@]}" "${FUZZ_PACKAGES[@]}"
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --parallel "$(nproc)"

found=build/fuzz/found
mkdir -p "$found"

# fuzz TARGET: status 0 where nothing was found. What it learns stays out of the tree.
fuzz() {
  local target=$1 learnt=build/fuzz/learnt/$1 dictionary=tests/fuzz/text/$1.dict
  mkdir -p "$learnt"
  local options=(-seed="$seed" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024
    -max_len=4096 -detect_leaks=1 -print_final_stats=1 -artifact_prefix="$found/$target-")
  [ ! -f "$dictionary" ] || options+=(-dict="$dictionary")
  if "build/fuzz/tests/fuzz/text/fuzz_$target" "${options[@]}" "$learnt" \
    "tests/fuzz/text/corpus/$target" >"$found/$target.log" 2>&1; then
    awk -v target="$target" '/^stat::number_of_executed_units/ { runs = $2 } / cov: / { for (i = 1; i < NF; ++i) if ($i == "cov:") cov = $(i + 1) }
      END { printf "%-20s %9d runs, %5d edges, nothing found\n", target, runs, cov }' "$found/$target.log"
    return 0
  fi
  echo "$target found something (seed $seed); the end of $found/$target.log:" >&2
  tail -n 40 "$found/$target.log" >&2
  local file
  file=$(sed -n 's/.*Test unit written to //p' "$found/$target.log" | tail -n 1)
  echo "run it again: build/fuzz/tests/fuzz/text/fuzz_$target ${file:-(no file was written)}" >&2
  return 1
}

echo "seed $seed, $seconds s each"
failed=0
for ((i = 0; i < ${#targets[@]}; i += 2)); do
  running=()
  for target in "${targets[@]:i:2}"; do
    fuzz "$target" &
    running+=($!)
  done
  for process in "${running[@]}"; do wait "$process" || failed=1; done
done
exit $failed
