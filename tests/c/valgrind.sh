#!/usr/bin/env bash
# valgrind.sh PROGRAM: a client of the C library uses no memory wrongly and loses none. valgrind knows no AVX-512, so kernels
# are compiled without it.
set -euo pipefail
if ! command -v valgrind >/dev/null; then
  [ -z "${TILEWRIGHT_TEST_FULL:-}" ] || { echo "valgrind is missing: install valgrind" >&2; exit 1; }
  echo "[SKIP] valgrind is missing: install valgrind"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TILEWRIGHT_CACHE=$work TILEWRIGHT_WORKER=off TILEWRIGHT_CXX="${TILEWRIGHT_CXX:-c++} -mno-avx512f"
valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite "$1"
