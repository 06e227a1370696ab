#!/usr/bin/env bash
# backward_gpu.sh TILEWRIGHT [DEVICE]: gradients on a GPU, each compared with the double-precision reference, then a table of times.
# Ends with status 1 if a gradient is wrong.
set -euo pipefail
tilewright=$1 device=${2:-cuda}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# check NAME INPUTS FLAGS SPEC
check() {
  printf '%s' "$4" >"$work/$1.json"
  # shellcheck disable=SC2086
  if "$tilewright" check "$work/$1.json" --inputs "random:$2" --device "$device" $3 >"$work/$1.log" 2>&1; then
    echo "ok      $1 ($2) $3"
  else
    failed=1
    echo "WRONG   $1 ($2) $3"
    grep -v '^render\|^compile\|^load\|^\[' "$work/$1.log" | head -20
  fi
}

all='"outputs": ["out", "lse"], "gradients": ["q", "k", "v"]'
causal='"mask_mod": "q_idx >= kv_idx"'
patterns='"score_mod": "cap * tanh(score / cap) + slopes[h] * (kv_idx - q_idx) + bias[clamp(kv_idx - q_idx, -200, 200) + 200] * column[kv_idx] + row[q_idx] + own(h, q_idx, kv_idx)",
  "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"], "range": [0, 0.01]}, "bias": {"dtype": "f32", "shape": [401]},
    "column": {"dtype": "bf16", "shape": ["kv_len"]}, "row": {"dtype": "f32", "shape": ["q_len"]},
    "own": {"dtype": "f32", "shape": ["num_q_heads", "q_len", "kv_len"]}},
  "scalars": {"cap": {"dtype": "f32", "default": 20}},
  "outputs": ["out", "lse"], "gradients": ["q", "k", "v", "slopes", "bias", "column", "row", "own", "cap"]'

for dtype in bf16 f16 f32; do
  for head_dim in 16 64 96 128 192 256; do
    check "plain_${dtype}_$head_dim" 2,4,2,300,413 "" "{\"dtype\": \"$dtype\", \"head_dim\": $head_dim, $all}"
    check "causal_${dtype}_$head_dim" 1,4,1,517,517 "" "{\"dtype\": \"$dtype\", \"head_dim\": $head_dim, $causal, $all}"
  done
  for flags in "" --deterministic; do
    check "patterns_$dtype$flags" 2,4,2,300,413 "$flags" "{\"dtype\": \"$dtype\", \"head_dim\": 128, $causal, $patterns}"
  done
done
check unlike_dims 2,3,3,200,333 "" "{\"dtype\": \"bf16\", \"head_dim\": 192, \"v_head_dim\": 128, $causal, $all}"
check unlike_dtypes 1,2,1,200,333 "" "{\"dtype\": \"bf16\", \"kv_dtype\": \"f16\", \"out_dtype\": \"f32\", \"head_dim\": 64, $all}"
check small_block 1,2,2,200,333 "" "{\"dtype\": \"bf16\", \"head_dim\": 64, \"block\": [16, 48], $causal, $all}"
check dead_rows 2,2,2,300,300 "--q-offset 3" "{\"dtype\": \"bf16\", \"head_dim\": 128, \"mask_mod\": \"q_idx % 5 != 0 && kv_idx > 150 && q_idx < 250\", $all}"
check bshd 2,4,4,300,300 "" "{\"dtype\": \"f16\", \"head_dim\": 80, \"layout\": \"bshd\", \"mask_mod\": \"abs(q_idx - kv_idx) < 70\", $all}"

for head_dim in 128 64; do
  for length in 2048 8192; do
    "$tilewright" bench --suite backward --device "$device" --head-dim "$head_dim" --q-len "$length"
  done
done
exit $failed
