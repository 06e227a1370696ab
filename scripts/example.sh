#!/usr/bin/env bash
# From two snippets to a checked result: ALiBi inside packed documents, causal. Installs what is
# missing, builds the command line, and runs it. Change the snippets and run it again:
#
#   scripts/example.sh [SPEC.json [BATCH,Q_HEADS,KV_HEADS,Q_LEN,KV_LEN]]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/dependencies.sh

spec=${1:-examples/alibi_documents.json}
shape=${2:-1,8,2,1024,1024}

install_missing "${BUILD_PACKAGES[@]}"
cmake --preset release -DTILEWRIGHT_BUILD_TESTS=OFF >/dev/null
build_with_progress --preset release --parallel "$(nproc)" --target tilewright_cli
tilewright=build/release/cli/tilewright

title() { printf '\n== %s\n' "$1"; }

title "The spec: $spec"
cat "$spec"
title "The place of the snippets in the rendered kernel (all of it: tilewright render $spec)"
"$tilewright" render "$spec" | grep -n -m 1 -A 18 'score_mod(\|mask_mod(' || true
title "Rendered, compiled, run and compared with the double-precision reference"
"$tilewright" check "$spec" --inputs "random:$shape"
if grep -q '"mask_mod"' "$spec"; then
  IFS=, read -r batch q_heads kv_heads q_len kv_len <<<"$shape"
  # Four times as long, so that there are full, partial and empty tiles.
  [ -n "${2:-}" ] || { q_len=$((4 * q_len)) kv_len=$((4 * kv_len)); }
  title "The block mask of $q_len x $kv_len"
  "$tilewright" mask "$spec" --batch "$batch" --q-heads "$q_heads" --kv-heads "$kv_heads" \
    --q-len "$q_len" --kv-len "$kv_len"
fi
