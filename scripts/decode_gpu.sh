#!/usr/bin/env bash
# decode_gpu.sh TILEWRIGHT [DEVICE]: dense calls with few rows of q on a GPU, each compared with the double-precision reference,
# then their speed in turns with paged decoding of the same sizes. Ends with status 1 if a result is wrong.
# ROUNDS (3): how often the two are measured in turns; 0 measures nothing. JOBS (8): how many checks run at a time.
set -euo pipefail
tilewright=$1 device=${2:-cuda} rounds=${ROUNDS:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

. "$(dirname "$0")/gpu_checks.sh"

causal='"mask_mod": "q_idx >= kv_idx"'
window='"mask_mod": "q_idx >= kv_idx && q_idx - kv_idx < 300"'
opaque='"mask_mod": "(q_idx * 7 + kv_idx * kv_idx) % 5 != 1"'
documents='"mask_mod": "q_idx >= kv_idx && document(b, kv_idx) == document(b, kv_len - 1)",
  "buffers": {"document": {"dtype": "i32", "shape": ["batch", "kv_len"], "range": [0, 3]}}'
alibi='"score_mod": "score + slopes[h] * (kv_idx - q_idx)", "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}}'
softcap='"score_mod": "20 * tanh(score / 20)"'

for dtype in bf16 f16; do
  for head_dim in 16 64 96 128 192 256; do
    check "plain_${dtype}_$head_dim" 2,8,2,1,1777 "" "{\"dtype\": \"$dtype\", \"head_dim\": $head_dim}"
    check "causal_${dtype}_$head_dim" 2,8,2,3,1777 "--q-offset 1774" "{\"dtype\": \"$dtype\", \"head_dim\": $head_dim, $causal}"
  done
  check "lse_$dtype" 1,16,1,1,5000 "" "{\"dtype\": \"$dtype\", \"head_dim\": 128, \"outputs\": [\"out\", \"lse\"]}"
  check "window_$dtype" 3,4,4,8,2500 "--q-offset 2492" "{\"dtype\": \"$dtype\", \"head_dim\": 128, $window}"
  check "opaque_$dtype" 1,4,2,2,3001 "" "{\"dtype\": \"$dtype\", \"head_dim\": 64, $opaque}"
  check "documents_$dtype" 4,8,8,1,1024 "--q-offset 1023" "{\"dtype\": \"$dtype\", \"head_dim\": 128, $documents}"
  check "alibi_$dtype" 2,8,2,4,999 "--q-offset 995" "{\"dtype\": \"$dtype\", \"head_dim\": 128, $causal, $alibi}"
  check "softcap_$dtype" 2,8,2,4,999 "--q-offset 995" "{\"dtype\": \"$dtype\", \"head_dim\": 128, $causal, $softcap}"
  check "bshd_$dtype" 2,8,2,2,777 "" "{\"dtype\": \"$dtype\", \"head_dim\": 128, \"layout\": \"bshd\"}"
  check "unlike_dims_$dtype" 2,8,2,2,777 "" "{\"dtype\": \"$dtype\", \"head_dim\": 192, \"v_head_dim\": 128}"
done
check many_blocks 1,1,1,1,200000 "" '{"dtype": "bf16", "head_dim": 128, "v_head_dim": 16}'
check one_column 3,2,1,1,1 "" '{"dtype": "bf16", "head_dim": 128}'
check all_masked 2,4,2,2,600 "" '{"dtype": "bf16", "head_dim": 128, "mask_mod": "kv_idx > 1000"}'

report_checks || failed=1

# rate SPEC INPUTS: milliseconds
rate() {
  "$tilewright" bench --spec "$work/$1.json" --inputs "random:$2" --device "$device" --budget-ms 80 --json |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["rows"][0]["ms"])'
}
median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

if [ "$rounds" != 0 ]; then
  printf '{"dtype": "bf16", "head_dim": 128}' >"$work/dense.json"
  printf '{"dtype": "bf16", "head_dim": 128, "mask_mod": "q_idx + kv_len - q_len >= kv_idx"}' >"$work/dense_causal.json"
  printf '{"dtype": "bf16", "head_dim": 128, "layout": "packed", "kv_layout": "paged"}' >"$work/paged.json"
  printf '\n%-10s %12s %12s %12s %10s %10s\n' "32q 8kv" "dense us" "causal us" "paged us" "dense GB/s" "paged/dense"
  for size in 1x2048 1x8192 1x32768 8x8192 16x32768 64x8192 256x2048; do
    batch=${size%x*} length=${size#*x}
    : >"$work/d"; : >"$work/c"; : >"$work/p"
    for ((round = 0; round < rounds; ++round)); do
      rate dense "$batch,32,8,1,$length" >>"$work/d"
      rate dense_causal "$batch,32,8,1,$length" >>"$work/c"
      rate paged "32,8/1:${length}x$batch/page=64" >>"$work/p"
    done
    awk -v d="$(median <"$work/d")" -v c="$(median <"$work/c")" -v p="$(median <"$work/p")" -v b="$batch" -v l="$length" -v s="$size" \
      'BEGIN { printf "%-10s %12.1f %12.1f %12.1f %10.0f %10.3f\n", s, d * 1e3, c * 1e3, p * 1e3, b * l * 8 * 128 * 4 / d / 1e6, p / d }'
  done
fi
exit $failed
