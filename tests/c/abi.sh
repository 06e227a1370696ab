#!/usr/bin/env bash
# abi.sh check|write FOLDER: compares what FOLDER/tilewright.h declares with FOLDER/libtilewright.abi, or writes that file after
# functions or fields were added. tests/c/symbols.cmake holds the library to the header's functions.
set -euo pipefail
what=$1 folder=$2
if ! command -v abidiff >/dev/null; then
  [ -z "${TILEWRIGHT_TEST_FULL:-}" ] || { echo "abidiff is missing: install abigail-tools" >&2; exit 1; }
  echo "[SKIP] abidiff is missing: install abigail-tools"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A library of empty functions with the header's types, since only debugging information tells types.
{
  echo '#include <tilewright.h>'
  awk '/^TW_API/ { inside = 1 } inside { ends = sub(/;$/, " { __builtin_trap(); }"); print; if (ends) inside = 0 }' "$folder/tilewright.h"
} >"$work/abi.c"
cc -std=c99 -g -gdwarf-4 -shared -fPIC -I"$folder" "$work/abi.c" -Wl,-soname,libtilewright.so.1 -nostdlib -o "$work/libtilewright.so.1"

if [ "$what" = write ]; then
  abidw --no-show-locs --no-corpus-path --no-comp-dir-path "$work/libtilewright.so.1" |
    sed "s|path='$work/abi.c'|path='tilewright.h'|" >"$folder/libtilewright.abi"
  exit
fi
status=0
abidiff "$folder/libtilewright.abi" "$work/libtilewright.so.1" || status=$?
if [ "$status" -eq 0 ]; then
  echo "$(grep -c __builtin_trap "$work/abi.c") functions as in libtilewright.abi"
  exit
fi
echo "The ABI differs from c/libtilewright.abi. Functions, and fields at a struct's end, may be added: raise TW_ABI_VERSION and" >&2
echo "run tests/c/abi.sh write c. Any other change needs another SONAME." >&2
exit 1
