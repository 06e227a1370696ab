#!/usr/bin/env bash
# rust.sh LIBRARY MAIN: compiles a program in Rust with rustc alone, links the library, and runs it.
set -euo pipefail
if ! command -v rustc >/dev/null; then
  [ -z "${TILEWRIGHT_TEST_FULL:-}" ] || { echo "rustc is missing: install rustc" >&2; exit 1; }
  echo "[SKIP] rustc is missing: install rustc"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=$(dirname "$1")
rustc --edition 2021 -D warnings -L "native=$folder" -C "link-arg=-Wl,-rpath,$folder" "$2" -o "$work/main"
"$work/main" >"$work/said"
cat "$work/said"
for line in "last row: 255.5, 62 % of the tiles visited" "status 3" '  --> mask_mod:1:10' '   |          ^'; do
  grep -qxF -- "$line" "$work/said" || { echo "no line \"$line\"" >&2; exit 1; }
done
