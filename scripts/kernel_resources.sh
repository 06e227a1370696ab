#!/usr/bin/env bash
# Writes tests/compile_matrix/kernel_resources.tsv anew: what every tactic's kernels take. About two minutes on two
# cores. For after a change of templates or tactics, or of the NVRTC in scripts/nvrtc.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/dependencies.sh

install_missing "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
provide_nvrtc
cmake --preset release -DTILEWRIGHT_BUILD_TESTS=ON >/dev/null
cmake --build --preset release --parallel "$(nproc)" --target compile_matrix | tail -n 1
build/release/tests/compile_matrix/compile_matrix --write-table
git diff --stat -- tests/compile_matrix/kernel_resources.tsv
