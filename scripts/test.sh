#!/usr/bin/env bash
# Builds everything and runs the tests; installs what is missing.
#
#   scripts/test.sh          what every change must pass. It leaves the campaigns to --full, and takes the day's half of the
#                            battery and the day's share of the tests of the emulated GPU.
#   scripts/test.sh --full   also the Python package, longer tests, the day's share of the campaigns, and what is due on
#                            one day of eight: sanitizers, the fuzzers of text, clang-tidy, mutants, the matrix of kernels
#   scripts/test.sh --all    as --full, with every case of the long campaigns: some hours (docs/verification.md)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/dependencies.sh

full=0
case "${1:-}" in
  "") ;;
  --full) full=1 ;;
  --all) full=all ;;
  *) echo "usage: scripts/test.sh [--full | --all]" >&2; exit 2 ;;
esac

# Random tests take other cases each day, and the same on every machine: what fails today fails for
# whoever looks into it. Set it to replay another day.
export TILEWRIGHT_TEST_SEED=${TILEWRIGHT_TEST_SEED:-$(date -u +%Y%m%d)}
echo "TILEWRIGHT_TEST_SEED=$TILEWRIGHT_TEST_SEED"
[[ $TILEWRIGHT_TEST_SEED =~ ^[1-9][0-9]*$ ]] ||
  { echo "TILEWRIGHT_TEST_SEED is no whole number above 0: give a date, as 20261129" >&2; exit 2; }
# Days since 1970, as dates jump where a month ends. A seed that is no date counts as it is.
if seconds=$(date -u -d "$TILEWRIGHT_TEST_SEED" +%s 2>/dev/null); then
  days=$((seconds / 86400))
else
  days=$TILEWRIGHT_TEST_SEED
fi

# due N...: whether it is one of these days of eight, on which something is due. --all has all of it.
due() { [ $full = all ] || { [ $full = 1 ] && [[ " $* " == *" $((days % 8)) "* ]]; }; }
# Entries of ctest that other days have.
declare -A entries_of_day=(
  [3]="mutants|mutants_tests|mask_equality"
  [6]="fuzz_campaign"
  [7]="compile_matrix|package_shared|emulated_(packed|packed_bench|battery)_sm_.*")

title() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }
cores=$(nproc)

title "Dependencies"
install_missing "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
[ $full = 0 ] || install_missing "${FULL_TEST_PACKAGES[@]}"
# With it, no test of kernels for GPUs may be skipped.
if provide_nvrtc; then
  export TILEWRIGHT_TEST_NEEDS_NVRTC=1
elif [ $full != 0 ]; then
  exit 3
else
  echo "Going on without: the tests of kernels for GPUs will say [SKIP]." >&2
fi

title "Build"
campaigns=ON
[ $full != 0 ] || campaigns=OFF
mutants=""
due 3 || mutants="mutants"
cmake --preset release -DTILEWRIGHT_BUILD_TESTS=ON -DTILEWRIGHT_TEST_CAMPAIGNS=$campaigns \
  -DTILEWRIGHT_TESTS_LEFT_OUT="$mutants" >/dev/null
cmake --build --preset release --parallel "$cores"

if [ $full != 0 ]; then
  title "Formatting"
  if due 2; then scripts/lint.sh; else scripts/lint.sh --format; fi
fi
if due 0 1 4; then
  title "Address and undefined behaviour sanitizers, with the second compiler"
  # Each such day has another quarter of the large rooms, and all of the small ones.
  quarters=("runtime;" "verify;fuzz;" "cli;cache;" "generator;")
  unset "quarters[days / 4 % 4]"
  left_out=$(printf %s "${quarters[@]}")
  [ $full = 1 ] || left_out=""
  cmake --preset asan -DTILEWRIGHT_TESTS_LEFT_OUT="$left_out" >/dev/null
fi
if due 0 4; then
  cmake --build --preset asan --parallel "$cores" --target unit_tests
  # The tests in their short form: under sanitizers the long one takes an hour.
  ctest --preset asan --parallel "$cores" --label-regex unit --no-tests=error
fi
if due 1; then
  title "Kernels for CPUs, instrumented, in an instrumented program"
  cmake --build --preset asan --parallel "$cores" --target sanitized_kernels
  TILEWRIGHT_TEST_FULL=$full ctest --preset asan --tests-regex '^sanitized_kernels$' --no-tests=error
fi
if due 5; then
  title "Fuzzers of text and files"
  SEED=$TILEWRIGHT_TEST_SEED scripts/fuzz_text.sh 10
fi

title "Tests"
# On days that run rooms under sanitizers the other tests take their short form, which keeps the run within CI's time.
if [ $full = all ] || { [ $full = 1 ] && ! due 0 4; }; then
  export TILEWRIGHT_TEST_FULL=$full
  # Other random masks each day: a run takes up to 200 numbers.
  export TILEWRIGHT_TEST_FIRST=${TILEWRIGHT_TEST_FIRST:-$((TILEWRIGHT_TEST_SEED % 1000003 * 200))}
else
  export TILEWRIGHT_TEST_PART=${TILEWRIGHT_TEST_PART:-$((TILEWRIGHT_TEST_SEED % 2))/2}
fi
other_days="none"
if [ $full != 0 ]; then
  for day in "${!entries_of_day[@]}"; do due "$day" || other_days+="|${entries_of_day[$day]}"; done
fi
ctest --preset release --parallel "$cores" --no-tests=error --exclude-regex "^($other_days)\$"
if [ $full != 0 ]; then
  title "The Python package"
  scripts/python_test.sh
fi
title "Done"
