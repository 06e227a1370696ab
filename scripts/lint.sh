#!/usr/bin/env bash
# Formatting and clang-tidy over the project's own sources. Needs build/release configured.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t sources < <(git ls-files '*.cpp' '*.hpp' | grep -v '^templates/')
clang-format --dry-run --Werror "${sources[@]}"
mapfile -t units < <(git ls-files 'base/*.cpp' 'generator/*.cpp' 'cache/*.cpp' 'runtime/*.cpp' 'verify/*.cpp' 'picture/*.cpp')
printf '%s\n' "${units[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy -p build/release --quiet \
  --extra-arg=-Wno-unknown-warning-option
