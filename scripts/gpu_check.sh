#!/usr/bin/env bash
# Everything that needs a GPU, with time limits, and a table at the end. For a machine that has a GPU
# but not what a build needs:
#
#   scripts/gpu_check.sh pack BUILD FOLDER        where it was built: collects programs and libraries
#   scripts/gpu_check.sh FOLDER [PART]...         on the machine with the GPU: runs them
#
# Parts: tests, battery, sanitizers, figures (these four without one: 4 minutes); bounded, in which Hopper
# kernels with bounded_waits and a fault must end with a report (1 minute); bundle, which precompiles 200
# kernels (16 cores: half a minute) and uses them with no compiler in reach; fuzz, 5,000 random cases in 8
# minutes (FUZZ_CASES, FUZZ_SECONDS; FUZZ_DEVICE=cpu tries it without a GPU, and the mutants); sanitized,
# random cases under compute-sanitizer (SANITIZED_CASES with each of its four tools, which run at once);
# mutants, those of CUDA's templates (MUTANTS=N: a sample; MUTANTS_SECONDS: begins none later;
# MUTANTS_ONLY="WORD...": those whose description contains one); mask_equality, 20,000 random block masks
# (BATCHES=N: N hundreds); mask_times, block masks beside PyTorch's; first and peers, which need PyTorch and
# take 1 and 2. The battery, the cases and the tests compare with kernels for the CPU, so a C++ compiler must
# be there. lse: how near 5,000 f32 calls come to the bound of lse (4 minutes). CUDA_VISIBLE_DEVICES chooses a GPU.
# CHECK_SECONDS=N (default 120) limits the battery; OUT=FOLDER keeps logs, tables and charts there.
set -u

if [ "${1:-}" = pack ]; then
  set -e
  [ $# -eq 3 ] || { echo "usage: $0 pack BUILD FOLDER" >&2; exit 2; }
  mkdir -p "$3/lib"
  for program in cli/tilewright tests/battery/battery tests/gpu/gpu_tests tests/mutants/mutants \
    tests/masks/mask_time tests/masks/mask_equality tests/verify_tests; do
    cp "$2/$program" "$3/"
    ldd "$2/$program" | awk '/libfmt|libcrypto|libCatch2|libpng|libfreetype|libbrotli|libz\./ {print $3}' |
      while read -r library; do cp -L "$library" "$3/lib/"; done
  done
  # The other machine's checkout may be another one, or none.
  root=$(cd "$(dirname "$0")/.." && pwd)
  cp "$0" "$root"/bench/{peers,first_result,masks,nvrtc_times,tactics,turns}.py "$3/"
  cp -r "$root/examples" "$3/"
  mkdir -p "$3/tests/battery" && cp -r "$root/tests/battery/variants" "$3/tests/battery/"
  mkdir -p "$3/tests/fuzz" && cp -r "$root/tests/fuzz/corpus" "$3/tests/fuzz/"
  mkdir -p "$3/tests/mutants" && cp -r "$root/tests/mutants/equivalent.json" "$root/tests/mutants/specs" "$3/tests/mutants/"
  mkdir -p "$3/tests/gpu" && cp "$root"/tests/gpu/{bundle_manifest,bounded_waits}.json "$3/tests/gpu/"
  rm -rf "$3/templates" && cp -r "$root/templates" "$3/"
  git -C "$root" describe --always --dirty --abbrev=7 --exclude '*' >"$3/COMMIT"
  ls -la "$3" "$3/lib"
  exit 0
fi

[ $# -ge 1 ] && [ -d "$1" ] || { sed -n 2,18p "$0"; exit 2; }
folder=$(cd "$1" && pwd)
shift
parts=" ${*:-tests battery sanitizers figures} "
logs=${OUT:-$(mktemp -d)}
mkdir -p "$logs"
seconds=${CHECK_SECONDS:-120}
fuzz_device=${FUZZ_DEVICE:-cuda}
table=()
commit=$(cat "$folder/COMMIT" 2>/dev/null || git describe --always --dirty 2>/dev/null || echo unknown)
work=$(mktemp -d)
export TILEWRIGHT_CACHE=$work/cache TILEWRIGHT_TEST_ROOT=$folder TILEWRIGHT_TEST_DEVICE=cuda
if ! command -v "${TILEWRIGHT_CXX:-c++}" >/dev/null; then
  for compiler in g++ clang++; do
    command -v $compiler >/dev/null && export TILEWRIGHT_CXX=$compiler && break
  done
fi

# A library that the machine has is better than one that was carried along.
for library in "$folder"/lib/*; do
  [ -e "$library" ] || continue
  if ! ldconfig -p 2>/dev/null | grep -q "$(basename "$library") "; then
    mkdir -p "$work/lib" && cp "$library" "$work/lib/"
  fi
done
ours() { LD_LIBRARY_PATH="$work/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"; }
chmod +x "$folder"/{tilewright,battery,gpu_tests,mutants,mask_time,mask_equality} 2>/dev/null
wants() { [[ $parts == *" $1 "* ]]; }
sanitizer=$(command -v compute-sanitizer || ls -d /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1)
started=$SECONDS

# record NAME STATUS LOG: a line of the table
record() {
  local verdict=ok
  [ "$2" -eq 0 ] || verdict="FAILED ($2)"
  [ "$2" -eq 124 ] && verdict="TIMED OUT"
  grep -q '^\[SKIP\]' "$3" && verdict="SKIPPED"
  table+=("$(printf '%-26s %-12s %s' "$1" "$verdict" "$(grep -v '^[[:space:]]*$' "$3" | tail -n 1 | cut -c 1-120)")")
}

# step NAME LIMIT COMMAND...: runs, shows the end of the log
step() {
  local name=$1 limit=$2 log status
  shift 2
  log=$logs/${name//[^a-z0-9]/_}.log
  echo "== $name ($((SECONDS - started)) s)"
  ours timeout --signal="${STOP:-TERM}" --kill-after=20 "$limit" "$@" >"$log" 2>&1
  status=$?
  grep -v -e '^[[:space:]]*$' -e '^\[[0-9]*/[0-9]*\]' "$log" | tail -n "${LINES_SHOWN:-12}"
  record "$name" $status "$log"
}

# 200 kernels are precompiled, and then used with NVRTC and the C++ compiler out of reach.
bundle() {
  local manifest=$folder/tests/gpu/bundle_manifest.json
  LINES_SHOWN=4 step precompile 150 "$folder/tilewright" precompile "$manifest" --targets sm_90a \
    --out "$logs/kernels.twb"
  LINES_SHOWN=12 step "bundle without compilers" 60 env TILEWRIGHT_BUNDLES="$logs/kernels.twb" \
    TILEWRIGHT_TEST_BUNDLE="$logs/kernels.twb" TILEWRIGHT_TEST_MANIFEST="$manifest" TILEWRIGHT_JIT=off \
    TILEWRIGHT_NVRTC=/nonexistent TILEWRIGHT_CXX=/nonexistent "$folder/gpu_tests" "*bundle*"
}

# Kernels for the reference are compiled by the system's compiler, so several processes share it out.
battery() {
  local count=$(($(nproc) / 2)) part pids=()
  [ "$count" -lt 1 ] && count=1
  [ "$count" -gt 8 ] && count=8
  echo "== battery, in $count parts ($((SECONDS - started)) s)"
  for ((part = 0; part < count; ++part)); do
    TILEWRIGHT_TEST_PART=$part/$count ours timeout --kill-after=5 "$seconds" "$folder/battery" \
      >"$logs/battery_$part.log" 2>&1 &
    pids+=($!)
  done
  for ((part = 0; part < count; ++part)); do
    wait "${pids[$part]}"
    record "battery, part $part of $count" $? "$logs/battery_$part.log"
  done
  cat "$logs"/battery_*.log | grep -A6 -E 'WRONG|error|hint' | head -n 60
  echo "the nearest to their bounds, and the furthest from the CPU's result:"
  cat "$logs"/battery_*.log | grep -E '^[a-z].* worst ' | sort -t '.' -k 2 |
    awk '{ for (i = 1; i < NF; ++i) if ($i == "worst") print $(i + 1), $0 }' | sort -rn | head -n 6 | cut -d ' ' -f 2-
  cat "$logs"/battery_*.log | grep -E '^[a-z].* worst ' |
    awk '{ for (i = 1; i < NF; ++i) if ($i == "both") print $(i - 2), $0 }' | sort -rn | head -n 6 | cut -d ' ' -f 2-
}

# Kernels in which somebody never says that something is there end with a report, and do not hang.
bounded_waits() {
  local fault file line waits
  local run=("$folder/tilewright" run "$folder/tests/gpu/bounded_waits.json" --inputs "random:1,1,1,1024,1024"
    --outputs "$work/out.safetensors" --device cuda)
  step "bounded waits" 60 "${run[@]}"
  while IFS='|' read -r fault file line waits; do
    rm -rf "$work/templates" && cp -r "$folder/templates" "$work/templates"
    if ! grep -qF "$line" "$work/templates/cuda/hopper/$file"; then
      table+=("$(printf '%-26s %-12s' "$fault" "NOT IN $file")")
      continue
    fi
    FAULTY_LINE=$line perl -0pi -e 's/\Q$ENV{FAULTY_LINE}\E/;/' "$work/templates/cuda/hopper/$file"
    # shellcheck disable=SC2016  # the inner shell's own
    STOP=KILL step "$fault" 60 bash -c '
      said=$(TILEWRIGHT_TEMPLATES=$1 "${@:3}" 2>&1) && { echo "it ended without an error"; exit 1; }
      grep -m 1 "waits for $2" <<<"$said" && exit 0
      printf "%s\n" "$said" "no report of a wait for $2"
      exit 1' bounded "$work/templates" "$waits" "${run[@]}"
  done <<'FAULTS'
nobody hands over a plan|planner.hpp|if (leads()) arrive(shared_address(&shared_.control->plan_full[place_.stage()]));|a plan
nobody gives K back|consumer.hpp|    ring_.give_back_k();|an empty place for K
nobody gives V back|consumer.hpp|    if (has_before) ring_.give_back_v(before.place);|an empty place for V
nobody announces K|producer.hpp|    arrive_and_expect(full, kPanels * kPanelBytes);|K, stage
FAULTS
}

sanitizers() {
  local tool
  local sample='gpu: forward gives*,gpu: a block mask*,gpu: tensors off*,gpu: a mask made*'
  for tool in memcheck initcheck synccheck racecheck; do
    if [ -z "$sanitizer" ]; then
      table+=("$(printf '%-26s %-12s' "$tool" "not there")")
      continue
    fi
    step "$tool" 45 "$sanitizer" --tool $tool --error-exitcode 9 "$folder/gpu_tests" "$sample"
    grep -E '^========= .*(error|hazard|Invalid|Uninit|Race|Barrier)' \
      "$logs/$tool.log" | sort | uniq -c | sort -rn | head -n 8
  done
}

figures() {
  local random=random:1,8,2,1024,1024 size=(--budget-ms 100)
  export LINES_SHOWN=40
  step "bench dense" 60 "$folder/tilewright" bench --suite dense "${size[@]}"
  step "bench mods" 60 "$folder/tilewright" bench --suite mods "${size[@]}"
  step "bench serving" 150 "$folder/tilewright" bench --suite serving "${size[@]}"
  step "bench masks" 40 "$folder/tilewright" bench --suite masks --q-len 16384 --budget-ms 100
  step "bench launch" 30 "$folder/tilewright" bench --suite launch
  step "bench compile" 180 "$folder/tilewright" bench --suite compile
  step "bench start" 60 "$folder/tilewright" bench --suite start
  LINES_SHOWN=12
  step "run, new snippet" 30 "$folder/tilewright" run "$folder/examples/alibi_documents.json" \
    --device cuda --inputs $random --outputs "$work/out.safetensors"
  step "run, kernel on disk" 30 "$folder/tilewright" run "$folder/examples/alibi_documents.json" \
    --device cuda --inputs $random --outputs "$work/out.safetensors"
  step "check, beside the CPU" 30 "$folder/tilewright" check "$folder/examples/alibi_documents.json" \
    --device cuda --beside cpu --inputs random:2,4,2,257,511
}

# Interrupted, it still reports what it did.
fuzz() {
  STOP=INT LINES_SHOWN=40 step fuzz "${FUZZ_SECONDS:-480}" "$folder/tilewright" fuzz \
    --device "$fuzz_device" --cases "${FUZZ_CASES:-5000}" --compiles 0 --out "$logs/fuzz"
}

sanitized() {
  local tool tools="memcheck initcheck synccheck racecheck" pids=() status
  if [ -z "$sanitizer" ]; then
    table+=("$(printf '%-26s %-12s' "sanitized cases" "not there")")
    return
  fi
  echo "== random cases under $tools ($((SECONDS - started)) s)"
  for tool in $tools; do
    ours timeout --kill-after=5 240 "$sanitizer" --tool "$tool" --target-processes all --error-exitcode 9 \
      "$folder/tilewright" fuzz --device cuda --cases "${SANITIZED_CASES:-40}" --compiles 0 --workers 4 \
      --seed "${SANITIZED_SEED:-7}" --out "$logs/sanitized_$tool" >"$logs/sanitized_$tool.log" 2>&1 &
    pids+=($!)
  done
  for tool in $tools; do
    wait "${pids[0]}"
    status=$?
    pids=("${pids[@]:1}")
    # The processes that run cases report for themselves, and what ends them does not end the run.
    grep -E '^========= .*SUMMARY' "$logs/sanitized_$tool.log" | grep -qv ' 0 \(errors\|hazards\)' && status=9
    grep -E '^========= .*(error|hazard|Invalid|Uninit|Race|Barrier|SUMMARY)' "$logs/sanitized_$tool.log" |
      sort | uniq -c | sort -rn | head -n 6
    grep '^Seed' "$logs/sanitized_$tool.log" >"$logs/sanitized_$tool.last" || status=1
    record "$tool, random cases" $status "$logs/sanitized_$tool.last"
  done
}

mutants() {
  local word words=()
  for word in ${MUTANTS_ONLY:-}; do words+=(--only "$word"); done
  LINES_SHOWN=60 step mutants $((${MUTANTS_SECONDS:-300} + 240)) "$folder/mutants" --device "$fuzz_device" \
    --sample "${MUTANTS:-0}" --seconds "${MUTANTS_SECONDS:-300}" ${sanitizer:+--racecheck "$sanitizer"} \
    ${words[@]+"${words[@]}"}
}

mask_equality() {
  LINES_SHOWN=24 step "mask equality" 420 env TILEWRIGHT_TEST_BATCHES="${BATCHES:-200}" \
    "$folder/mask_equality" --full
}

mask_times() {
  LINES_SHOWN=40 step "masks beside PyTorch" 120 python3 "$folder/masks.py" --mask-time "$folder/mask_time" \
    --json "$logs/masks.json" --chart "$logs/masks.svg"
}

first() {
  LINES_SHOWN=8 step "first result" 240 python3 "$folder/first_result.py" \
    --tilewright "$folder/tilewright" --repeats 2 --json "$logs/first.json"
}

peers() {
  LINES_SHOWN=80 step peers 280 python3 "$folder/peers.py" --tilewright "$folder/tilewright" \
    --commit "$commit" --json "$logs/peers.json" --markdown "$logs/peers.md" --chart "$logs/peers.svg" \
    ${PEERS_ARGUMENTS:-}
}

echo "$(date -u '+%Y-%m-%d %H:%M UTC'), commit $commit, $(nvidia-smi --query-gpu=name,driver_version \
  --format=csv,noheader 2>/dev/null || echo 'no GPU'), $(nproc) cores"
step doctor 30 "$folder/tilewright" doctor
wants tests && LINES_SHOWN=2 step "capture beside the pool" 60 "$folder/gpu_tests" "*while the memory pool is made"
wants tests && LINES_SHOWN=20 step "gpu tests" 100 "$folder/gpu_tests" -w NoTests -d yes
wants bounded && bounded_waits
wants battery && battery
wants sanitizers && sanitizers
wants figures && figures
wants bundle && bundle
wants lse && LINES_SHOWN=6 step "lse bound" 240 "$folder/verify_tests" "[.lse]"
wants fuzz && fuzz
wants sanitized && sanitized
wants mutants && mutants
wants mask_equality && mask_equality
wants mask_times && mask_times
wants first && first
wants peers && peers

echo
printf '%-26s %-12s %s\n' what verdict "last line"
printf '%s\n' "${table[@]}"
echo "$((SECONDS - started)) s, commit $commit, $(date -u '+%Y-%m-%d')"
printf '%s\n' "${table[@]}" | grep -qE 'FAILED|TIMED OUT' && exit 1
exit 0
