#!/usr/bin/env bash
# new_rows_gpu.sh TILEWRIGHT [DEVICE]: calls whose new rows are outside of pages (kv_new) on a GPU, each compared with the
# double-precision reference, then their speed in turns with all columns in pages. Ends with status 1 if a result is wrong.
# BUDGET_MS (150): how long each row is measured; 0 measures nothing. JOBS (8): how many checks run at a time.
set -euo pipefail
tilewright=$1 device=${2:-cuda} budget=${BUDGET_MS:-150}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

. "$(dirname "$0")/gpu_checks.sh"

new_rows='"layout": "packed", "kv_layout": "paged", "kv_new": true, "outputs": ["out", "lse"]'
causal='"mask_mod": "q_idx >= kv_idx"'
window='"mask_mod": "q_idx >= kv_idx && q_idx - kv_idx < 150"'
kept='"mask_mod": "q_idx >= kv_idx && (kv_token < 0 || kv_token % 7 != 3)"'

# Contexts that end at each row of a group of 8, at groups, pages and tiles, and none; more rows than columns; rows that
# are decoded.
ends=137:$((137 + 1000))
for context in 1 2 3 4 5 6 7 8 16 48 64 127 128 129 255 256 511; do ends+=,150:$((150 + context)); done
mixed=300:300,20:9,129:2000,0:70,5:333,1:500,513:600,40:40

for dtype in bf16 f16; do
  for head_dim in 32 64 96 128 192 256; do
    for page in 16 48 64 256; do
      check "ends_${dtype}_${head_dim}_$page" "4,2/$ends/page=$page" "" "{\"dtype\": \"$dtype\", \"head_dim\": $head_dim, $new_rows, $causal}"
    done
    check "full_${dtype}_$head_dim" "4,1/$mixed/page=16" "" "{\"dtype\": \"$dtype\", \"head_dim\": $head_dim, $new_rows}"
    check "mixed_${dtype}_$head_dim" "8,2/$mixed/page=32" "" "{\"dtype\": \"$dtype\", \"head_dim\": $head_dim, $new_rows, $causal}"
  done
  check "window_$dtype" "8,2/$mixed/page=16" "" "{\"dtype\": \"$dtype\", \"head_dim\": 128, $new_rows, $window}"
  check "tokens_$dtype" "8,2/$mixed/page=16" "" "{\"dtype\": \"$dtype\", \"head_dim\": 128, $new_rows, $kept}"
  check "unlike_dims_$dtype" "8,2/$mixed/page=16" "" "{\"dtype\": \"$dtype\", \"head_dim\": 192, \"v_head_dim\": 128, $new_rows, $causal}"
  check "other_blocks_$dtype" "8,2/$mixed/page=16" "" "{\"dtype\": \"$dtype\", \"head_dim\": 128, \"block\": [64, 80], $new_rows, $causal}"
  check "portable_$dtype" "8,2/$mixed/page=5" "" "{\"dtype\": \"$dtype\", \"head_dim\": 128, $new_rows, $causal}"
done

report_checks || failed=1

if [ "$budget" != 0 ]; then
  "$tilewright" bench --suite paged --only kv_new --device "$device" --budget-ms "$budget"
fi
exit $failed
