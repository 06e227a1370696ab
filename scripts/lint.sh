#!/usr/bin/env bash
# Formatting and clang-tidy over the project's own sources.
#
#   scripts/lint.sh          ten files as one, which leaves out the static analyzer: a minute or two on two cores
#   scripts/lint.sh --deep   each file by itself, with the static analyzer: a quarter of an hour
set -euo pipefail
cd "$(dirname "$0")/.."

unity=ON
case "${1:-}" in
  "") ;;
  --deep) unity=OFF ;;
  *) echo "usage: scripts/lint.sh [--deep]" >&2; exit 2 ;;
esac

mapfile -t sources < <(git ls-files '*.cpp' '*.hpp' | grep -v '^templates/')
clang-format --dry-run --Werror "${sources[@]}"

build=build/lint-$unity
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTILEWRIGHT_BUILD_TESTS=OFF \
  -DCMAKE_UNITY_BUILD=$unity -DCMAKE_UNITY_BUILD_BATCH_SIZE=10 >/dev/null
# Generated sources (templates, the font) have no style; units that hold the project's files have.
mapfile -t units < <(sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$build/compile_commands.json" |
  grep -E "^$PWD/(base|generator|cache|runtime|c|verify|fuzz|picture|cli)/|/Unity/")
printf '%s\n' "${units[@]}" | xargs -P "$(nproc)" -n 1 clang-tidy -p "$build" --quiet \
  --header-filter="^$PWD/(base|generator|cache|runtime|c|verify|fuzz|picture|cli)/.*\.(hpp|cpp)$" \
  --checks=-bugprone-suspicious-include --extra-arg=-Wno-unknown-warning-option 2>/dev/null
