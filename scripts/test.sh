#!/usr/bin/env bash
# Builds everything and runs the tests; installs what is missing.
#
#   scripts/test.sh          what every change must pass. It leaves the campaigns to --full, and takes the day's half of the
#                            battery and the day's share of the tests of the emulated GPU.
#   scripts/test.sh --full   also the campaigns and long tests, the sanitizers, the second compiler, the fuzzers, the linters
#                            and the Python package. Campaigns take the day's share of their cases.
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
cmake --preset release -DTILEWRIGHT_BUILD_TESTS=ON -DTILEWRIGHT_TEST_CAMPAIGNS=$campaigns >/dev/null
cmake --build --preset release --parallel "$cores"

if [ $full != 0 ]; then
  title "Formatting and clang-tidy"
  scripts/lint.sh
  # The tests in their short form: under sanitizers the long one takes an hour. Each day has another quarter of the
  # large rooms, and all of the small ones.
  title "The second compiler, with address and undefined behaviour sanitizers"
  quarters=("runtime;" "verify;fuzz;" "cli;cache;" "generator;")
  unset "quarters[TILEWRIGHT_TEST_SEED % 4]"
  left_out=$(printf %s "${quarters[@]}")
  [ $full = 1 ] || left_out=""
  cmake --preset asan -DTILEWRIGHT_TESTS_LEFT_OUT="$left_out" >/dev/null
  cmake --build --preset asan --parallel "$cores" --target unit_tests
  ctest --preset asan --parallel "$cores" --label-regex unit --no-tests=error
  title "Kernels for CPUs, instrumented, in an instrumented program"
  cmake --build --preset asan --parallel "$cores" --target sanitized_kernels
  TILEWRIGHT_TEST_FULL=1 ctest --preset asan --tests-regex '^sanitized_kernels$' --no-tests=error
  title "Fuzzers of text and files" && SEED=$TILEWRIGHT_TEST_SEED scripts/fuzz_text.sh 10
fi

title "Tests"
if [ $full != 0 ]; then
  export TILEWRIGHT_TEST_FULL=$full
  # Other random masks each day: a run takes up to 200 numbers.
  export TILEWRIGHT_TEST_FIRST=${TILEWRIGHT_TEST_FIRST:-$((TILEWRIGHT_TEST_SEED % 1000003 * 200))}
else
  export TILEWRIGHT_TEST_PART=${TILEWRIGHT_TEST_PART:-$((TILEWRIGHT_TEST_SEED % 2))/2}
fi
ctest --preset release --parallel "$cores" --no-tests=error
if [ $full != 0 ]; then
  title "The Python package"
  scripts/python_test.sh
fi
title "Done"
