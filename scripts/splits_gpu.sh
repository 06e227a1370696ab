#!/usr/bin/env bash
# splits_gpu.sh TILEWRIGHT [DEVICE]: calls with few q tiles over many columns on a Hopper GPU, whose columns blocks of threads
# share. Each is compared with the double-precision reference on inputs of a new seed; calls that should be split and are not
# count as wrong. Then their speed in turns with the same calls unsplit. Ends with status 1 if a result is wrong.
# SEED: of the inputs. GPU_TESTS: the program gpu_tests, which repeats calls 1,000 times and replays graphs; none: left out.
# BUDGET_MS (100): how long each row is measured; 0 measures nothing. JOBS (8): how many checks run at a time. Two minutes.
set -euo pipefail
tilewright=$1 device=${2:-cuda} budget=${BUDGET_MS:-100} seed=${SEED:-$RANDOM}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
summary=()

. "$(dirname "$0")/gpu_checks.sh"

began=$SECONDS
# row NAME STATUS: of the table at the end
row() {
  summary+=("$(printf '%-34s %-8s %4d s' "$1" "$2" $((SECONDS - began)))")
  began=$SECONDS
  [ "$2" = ok ] || failed=1
}

# split NAME INPUTS FLAGS SPEC: a check of a call that explain says is split.
split() {
  printf '%s' "$4" >"$work/spec.json"
  if [[ $2 != */* ]] && ! "$tilewright" explain "$work/spec.json" --target sm_90a --shape "$2" | grep -q '^split'; then
    echo "NOT SPLIT $1 ($2)"
    failed=1
  fi
  check "$1" "$2" "$3 --seed $seed" "$4"
}

causal='"mask_mod": "q_idx >= kv_idx"'
window='"mask_mod": "q_idx >= kv_idx && q_idx - kv_idx < 3000"'
opaque='"mask_mod": "(q_idx * 7 + kv_idx * kv_idx) % 5 != 1"'
sparse='"mask_mod": "q_idx >= 9000 && kv_idx % 4000 < 40"'
sink='"sink": "sink[h]", "buffers": {"sink": {"dtype": "f32", "shape": ["num_q_heads"], "range": [-2, 2]}}'
alibi='"score_mod": "score + slopes[h] * (kv_idx - q_idx)", "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"]}}'
softcap='"score_mod": "20 * tanh(score / 20)"'
# The greatest scores of a row are in one part, 400 above the others'.
unlike='"score_mod": "score + (kv_idx > 9000 ? 400.0f : 0.0f)"'
packed='"layout": "packed"'
paged='"layout": "packed", "kv_layout": "paged"'

for dtype in bf16 f16; do
  for head_dim in 32 64 96 128 192 256; do
    split "plain_${dtype}_$head_dim" 1,3,1,100,9001 "" "{\"dtype\": \"$dtype\", \"head_dim\": $head_dim, \"outputs\": [\"out\", \"lse\"]}"
    split "causal_${dtype}_$head_dim" 1,2,1,250,8192 "--q-offset 7942" "{\"dtype\": \"$dtype\", \"head_dim\": $head_dim, \"block\": [128, 128], $causal}"
  done
done
base='"dtype": "bf16", "head_dim": 128, "outputs": ["out", "lse"]'
split window 2,2,2,130,10000 "--q-offset 9870" "{$base, $window}"
split opaque 1,2,1,128,10001 "" "{$base, $opaque}"
split sparse 1,2,1,128,10001 "--q-offset 8950" "{$base, $sparse}"
split sink 1,2,1,128,9000 "" "{$base, $sink}"
split alibi 1,4,2,77,9000 "--q-offset 8923" "{$base, $causal, $alibi}"
split softcap 1,4,2,77,9000 "--q-offset 8923" "{$base, $causal, $softcap}"
split unlike_parts 1,4,2,77,10000 "" "{$base, $unlike}"
split max_scores 1,4,2,77,9000 "" "{\"dtype\": \"bf16\", \"head_dim\": 128, \"outputs\": [\"out\", \"lse\", \"max_scores\"]}"
split bshd 2,2,1,128,9000 "" "{$base, \"layout\": \"bshd\"}"
split unlike_dims 1,4,2,128,9000 "" '{"dtype": "bf16", "head_dim": 192, "v_head_dim": 128}'
split bytes 1,4,2,128,9000 "" "{$base, \"kv_dtype\": \"f8e4m3\", \"k_scale\": \"0.5f\", \"v_scale\": \"1.5f\"}"
split one_head 1,1,1,128,60000 "" "{$base}"
for head_dim in 64 128 256; do
  of="\"dtype\": \"bf16\", \"head_dim\": $head_dim, \"outputs\": [\"out\", \"lse\"]"
  split "packed_$head_dim" "2,1/128:9000,20:0,70:3000,1:8000" "" "{$of, $packed, $causal}"
  split "packed_plain_$head_dim" "2,2/300:9000" "" "{$of, $packed}"
  for page in 16 48; do
    split "paged_${head_dim}_$page" "4,1/256:9000,1:500/page=$page" "" "{$of, $paged, $causal}"
  done
  split "new_rows_$head_dim" "4,1/256:9000,100:100/page=16" "" "{$of, $paged, \"kv_new\": true, $causal}"
done
if report_checks; then row "checks of seed $seed" ok; else row "checks of seed $seed" WRONG; fi

if [ -n "${GPU_TESTS:-}" ]; then
  if "$GPU_TESTS" 'gpu: split*'; then row "1,000 repeats and 40 replays" ok; else row "1,000 repeats and 40 replays" WRONG; fi
fi

if [ "$budget" != 0 ]; then
  if "$tilewright" bench --suite splits --device "$device" --budget-ms "$budget" --json >"$work/bench.json"; then
    row "bench --suite splits" ok
    python3 - "$work/bench.json" <<'END'
import json, sys
facts = json.load(open(sys.argv[1]))
print(f"\n{facts.get('gpu', {}).get('name', facts['device'])}: {facts['rows'][0]['dtype']}, milliseconds")
print(f"{'variant':16} {'sequences':16} {'heads':>7} {'split':>9} {'unsplit':>9} {'gain':>6}  kernel")
for row in facts["rows"]:
    heads = f"{row['num_q_heads']}/{row['num_kv_heads']}" if "num_q_heads" in row else ""
    unsplit = f"{row['unsplit_ms']:9.4f} {row['ratio']:6.2f}" if "ratio" in row else f"{'':16}"  # a CPU's
    print(f"{row['variant']:16} {row['sequences']:16} {heads:>7} {row['ms']:9.4f} {unsplit}  {row['kernel']}")
END
  else
    row "bench --suite splits" WRONG
  fi
fi

printf '\n%-34s %-8s %6s\n' part result time
printf '%s\n' "${summary[@]}"
exit $failed
