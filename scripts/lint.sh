#!/usr/bin/env bash
# Formatting and clang-tidy over the project's own sources.
#
#   scripts/lint.sh --format formatting alone
#   scripts/lint.sh          forty files as one, which leaves out the static analyzer: two or three minutes on two cores
#   scripts/lint.sh --deep   each file by itself, with the static analyzer: half an hour
set -euo pipefail
cd "$(dirname "$0")/.."

unity=ON
case "${1:-}" in
  "" | --format) ;;
  --deep) unity=OFF ;;
  *) echo "usage: scripts/lint.sh [--format | --deep]" >&2; exit 2 ;;
esac

mapfile -t sources < <(git ls-files '*.cpp' '*.hpp' | grep -v '^templates/')
clang-format --dry-run --Werror "${sources[@]}"
[ "${1:-}" != --format ] || exit 0

# Checks take most of their time in the standard library's headers, which files that are joined read once.
configure() {  # configure ON|OFF: whether files are joined
  cmake -S . -B "build/lint-$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTILEWRIGHT_BUILD_TESTS=OFF \
    -DCMAKE_UNITY_BUILD="$1" -DCMAKE_UNITY_BUILD_BATCH_SIZE=40 >/dev/null
}
configure OFF
[ $unity = OFF ] || configure ON
build=build/lint-$unity
# Generated sources (templates, the font) have no style; units that hold the project's files have.
rooms="(base|generator|cache|runtime|c|verify|fuzz|picture|cli)"
mapfile -t units < <(sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$build/compile_commands.json" |
  grep -E "^$PWD/$rooms/|/Unity/")
# tidy BUILD FILE: what clang-tidy finds, without the count of what it left out.
tidy() {
  clang-tidy -p "$1" --quiet --header-filter="^$PWD/$rooms/.*\.(hpp|cpp)$" --checks=-bugprone-suspicious-include \
    --extra-arg=-Wno-unknown-warning-option "$2" 2>/dev/null
}

# lint FILE: files that may not be joined, as two of them use one name, are looked at one by one, which takes minutes.
lint() {
  local found status=0 file
  found=$(tidy "$build" "$1") || status=$?
  if [[ $1 == */Unity/* && $found == *clang-diagnostic-error* ]]; then
    echo "One by one, as they cannot be joined: $(grep -m1 clang-diagnostic-error <<<"$found")" >&2
    status=0
    for file in $(sed -n 's/^#include "\(.*\)"$/\1/p' "$1"); do
      tidy build/lint-OFF "$file" || status=1
    done
  elif [ $status != 0 ]; then
    printf '%s\n' "$found"
  fi
  return $status
}
export -f tidy lint
export build rooms
printf '%s\n' "${units[@]}" | xargs -P "$(nproc)" -n 1 bash -c 'lint "$1"' lint
