#!/usr/bin/env bash
# quantised_gpu.sh TILEWRIGHT [DEVICE]: q, k and v of one byte and TF32 on a GPU, each call compared with the double-precision
# reference, then a table of times beside 16 bits, in turns on the same data. Ends with status 1 if a result is wrong.
# ROUNDS (5): how often calls are measured in turns; 0 measures nothing. JOBS (8): how many checks run at a time.
# TACTICS=1 adds other tactics of q, k and v of f8e4m3. SHRINK (1) divides the sizes of measured calls, to try the script elsewhere.
set -euo pipefail
tilewright=$1 device=${2:-cuda} rounds=${ROUNDS:-5} shrink=${SHRINK:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
started=$SECONDS

. "$(dirname "$0")/gpu_checks.sh"

causal='"mask_mod": "q_idx >= kv_idx"'
lse='"outputs": ["out", "lse"]'
paged='"layout": "packed", "kv_layout": "paged"'
plain='"k_scale": "0.5f", "v_scale": "0.25f"'
none='"k_scale": "1.0f", "v_scale": "1.0f"'
by_head='"k_scale": "k_scales[h_kv]", "v_scale": "v_scales[h_kv]", "buffers": {
  "k_scales": {"dtype": "f32", "shape": ["num_kv_heads"], "range": [0.1, 1]},
  "v_scales": {"dtype": "f32", "shape": ["num_kv_heads"], "range": [0.1, 1]}}'
by_token='"k_scale": "k_scales(h_kv, kv_token)", "v_scale": "v_scales(h_kv, kv_token)", "buffers": {
  "k_scales": {"dtype": "f32", "shape": ["num_kv_heads", "total_kv"], "range": [0.01, 0.04]},
  "v_scales": {"dtype": "f32", "shape": ["num_kv_heads", "total_kv"], "range": [0.01, 0.04]}}'
by_column='"k_scale": "k_scales(b, h_kv, kv_idx)", "v_scale": "v_scales(b, h_kv, kv_idx)", "buffers": {
  "k_scales": {"dtype": "f32", "shape": ["batch", "num_kv_heads", "kv_len"], "range": [0.01, 0.04]},
  "v_scales": {"dtype": "f32", "shape": ["batch", "num_kv_heads", "kv_len"], "range": [0.01, 0.04]}}'
eight='"q_scale": "0.75f", "k_scale": "0.5f", "v_scale": "0.25f"'
mixed=1:1328,5:18,129:463
decoded=1:523,1:37,1:2011
chunks=128:128,57:57,1:1,300:300
context=477:893,1016:1500,33:49,700:1724,250:1000,16:32,64:64,1024:1040,90:1100,1:700

# Cases 000-7 and 000-8: q, k and v of f8e4m3. With a small out_scale most of out is clamped.
for out_scale in 0.125f 0.0005f; do
  check "000_7_$out_scale" "8,8/$chunks" "" "{\"dtype\": \"f8e4m3\", \"out_dtype\": \"f8e4m3\", \"out_scale\": \"$out_scale\",
    \"head_dim\": 128, \"layout\": \"packed\", $causal, $eight, $lse}"
done
check 000_8 "16,1/$chunks" "" "{\"dtype\": \"f8e4m3\", \"out_dtype\": \"bf16\", \"head_dim\": 112, \"layout\": \"packed\", $eight}"
for head_dim in 64 128 256; do
  for out in bf16 f8e4m3; do
    scale=""
    [ $out = bf16 ] || scale=', "out_scale": "0.01f"'
    check "eight_${head_dim}_$out" 2,4,2,413,517 "" \
      "{\"dtype\": \"f8e4m3\", \"out_dtype\": \"$out\"$scale, \"head_dim\": $head_dim, $eight, $lse}"
    check "eight_causal_${head_dim}_$out" 1,4,2,700,700 "" \
      "{\"dtype\": \"f8e4m3\", \"out_dtype\": \"$out\"$scale, \"head_dim\": $head_dim, $causal, $eight, $lse}"
  done
done
check eight_paged "8,2/$mixed,$decoded/page=16" "" \
  "{\"dtype\": \"f8e4m3\", \"out_dtype\": \"f16\", \"head_dim\": 128, $paged, $causal, $eight, $lse}"
check wide_to_eight "8,2/$mixed" "" \
  "{\"dtype\": \"bf16\", \"out_dtype\": \"f8e4m3\", \"out_scale\": \"0.01f\", \"head_dim\": 128, \"layout\": \"packed\", $causal}"
# Case 003-4: the context in pages of one byte, new rows beside it.
for kv in f8e4m3 f8e5m2; do
  check "003_4_$kv" "8,8/$context/page=32" "" "{\"dtype\": \"f16\", \"kv_dtype\": \"$kv\", \"kv_new\": true, \"head_dim\": 128, $paged, $causal, $plain}"
  check "003_4_none_$kv" "8,8/$context/page=32" "" "{\"dtype\": \"f16\", \"kv_dtype\": \"$kv\", \"kv_new\": true, \"head_dim\": 128, $paged, $causal, $none}"
done
# Case 003-7: pages in blocks of 16 bytes.
check 003_7_f16 "4,2/$mixed/page=16" "" "{\"dtype\": \"f16\", \"head_dim\": 24, \"layout\": \"packed\", \"kv_layout\": \"paged_x\", $causal}"
check 003_7_f32 "4,2/$mixed/page=17" "" "{\"dtype\": \"f32\", \"head_dim\": 40, \"layout\": \"packed\", \"kv_layout\": \"paged_x\", $causal}"
check 003_7_f8 "4,2/$mixed/page=16" "" "{\"dtype\": \"f16\", \"kv_dtype\": \"f8e4m3\", \"head_dim\": 80, \"v_head_dim\": 64,
  \"layout\": \"packed\", \"kv_layout\": \"paged_x\", $causal, $plain}"
# Case 004-6 and its like: every type, granularity and layout, decoded and not, with the decode kernel and without.
for kv in f8e4m3 f8e5m2 i8; do
  for sequences in $mixed $decoded; do
    check "004_6_${kv}_${#sequences}" "8,2/$sequences/page=16" "" "{\"dtype\": \"bf16\", \"kv_dtype\": \"$kv\", \"head_dim\": 128, $paged, $causal, $plain}"
  done
  check "by_head_$kv" "8,2/$mixed,$decoded/page=64" "" "{\"dtype\": \"f16\", \"kv_dtype\": \"$kv\", \"head_dim\": 128, $paged, $causal, $lse, $by_head}"
  check "by_token_$kv" "8,2/$mixed,$decoded/page=64" "" "{\"dtype\": \"bf16\", \"kv_dtype\": \"$kv\", \"head_dim\": 128, $paged, $causal, $lse, $by_token}"
  check "packed_$kv" "8,2/$mixed,$decoded" "" "{\"dtype\": \"bf16\", \"kv_dtype\": \"$kv\", \"head_dim\": 64, \"layout\": \"packed\", $causal, $by_head}"
  check "wide_$kv" "4,1/$mixed,$decoded/page=16" "" "{\"dtype\": \"f16\", \"kv_dtype\": \"$kv\", \"head_dim\": 256, $paged, $causal, $plain}"
  check "dense_$kv" 2,8,2,333,413 "" "{\"dtype\": \"bf16\", \"kv_dtype\": \"$kv\", \"head_dim\": 128, $causal, $lse, $by_head}"
  check "dense_by_column_$kv" 2,8,2,333,413 "" "{\"dtype\": \"f16\", \"kv_dtype\": \"$kv\", \"head_dim\": 128, $lse, $by_column}"
  check "dense_decode_$kv" 2,8,2,1,3001 "--q-offset 3000" "{\"dtype\": \"bf16\", \"kv_dtype\": \"$kv\", \"head_dim\": 128, $causal, $plain}"
  check "f32_$kv" 1,4,2,133,213 "" "{\"dtype\": \"f32\", \"kv_dtype\": \"$kv\", \"head_dim\": 64, $plain}"
done
for head_dim in 64 128 256; do
  check "tf32_$head_dim" 2,4,2,333,413 "" "{\"dtype\": \"f32\", \"f32_products\": \"tf32\", \"head_dim\": $head_dim, $causal, $lse}"
done
check scaled_bf16 2,8,2,333,413 "" "{\"dtype\": \"bf16\", \"head_dim\": 128, $causal, $lse, \"q_scale\": \"0.75f\", $by_head}"
failed=0
report_checks || failed=1
[ "$rounds" != 0 ] || exit $failed

# compare TITLE INPUTS BUDGET NAME SPEC [NAME SPEC]...: measured in turns; the first is what the others are compared with
requests=$work/requests
: >"$work/titles"
compare() {
  local title=$1 inputs=$2 budget=$3
  shift 3
  printf '%s\n' "$title|$#" >>"$work/titles"
  while [ $# -gt 0 ]; do
    printf '%s|%s\n' "$1" "{\"spec\": $2, \"inputs\": \"random:$inputs\", \"budget_ms\": $budget}" | tr '\n' ' ' >>"$work/titles"
    echo >>"$work/titles"
    shift 2
  done
}

bf16='"dtype": "bf16"'
cache() { printf '"dtype": "bf16", "kv_dtype": "%s"' "$1"; }

of() { echo $(($1 / shrink > 0 ? $1 / shrink : 1)); }
decode="\"head_dim\": 128, $paged"
for size in 64x8192 16x32768 1x65536; do
  batch=$(of "${size%x*}") length=$(of "${size#*x}")
  compare "decode B$batch kv $length 32/8 page 64" "32,8/1:${length}x$batch/page=64" 60 \
    bf16 "{$bf16, $decode}" \
    "f8e4m3" "{$(cache f8e4m3), $decode, $none}" \
    "f8e4m3 by head" "{$(cache f8e4m3), $decode, $by_head}" \
    "f8e4m3 by token, head" "{$(cache f8e4m3), $decode, $by_token}" \
    "i8 by token, head" "{$(cache i8), $decode, $by_token}"
done
for size in 4x2048x8192 8x512x8192; do
  IFS=x read -r batch rows length <<<"$size"
  rows=$(of "$rows") length=$(of "$length")
  compare "prefill B$batch q $rows kv $length 32/8 page 64 causal" "32,8/$rows:${length}x$batch/page=64" 60 \
    bf16 "{$bf16, $decode, $causal}" \
    "f8e4m3" "{$(cache f8e4m3), $decode, $causal, $none}" \
    "f8e4m3 by head" "{$(cache f8e4m3), $decode, $causal, $by_head}" \
    "i8 by token, head" "{$(cache i8), $decode, $causal, $by_token}"
done
length=$(of 8192)
for head_dim in 64 128 256; do
  heads=$((2048 / head_dim))
  for mask in "" ", $causal"; do
    compare "dense D$head_dim B2 H$heads $length${mask:+ causal}" "2,$heads,$heads,$length,$length" 40 \
      bf16 "{$bf16, \"head_dim\": $head_dim$mask}" \
      "k, v of f8e4m3" "{$(cache f8e4m3), \"head_dim\": $head_dim$mask, $none}" \
      "q, k, v of f8e4m3" "{\"dtype\": \"f8e4m3\", \"out_dtype\": \"bf16\", \"head_dim\": $head_dim$mask, \"q_scale\": \"1.0f\", $none}"
  done
done
if [ "${TACTICS:-0}" = 1 ]; then
  # with DIM MASK TACTIC: the spec with a tactic of its own
  with() {
    printf '{"dtype": "f8e4m3", "out_dtype": "bf16", "head_dim": %s%s, "q_scale": "1.0f", %s, "tactic": {"name": "hopper"%s}}' "$1" "$2" "$none" "$3"
  }
  for mask in "" ", $causal"; do
    compare "f8e4m3 D128 B2 H16 $length${mask:+ causal}" "2,16,16,$length,$length" 40 \
      "chosen" "$(with 128 "$mask" "")" \
      "in turns" "$(with 128 "$mask" ', "take_turns": 1')" \
      "2 stages" "$(with 128 "$mask" ', "stages": 2')" \
      "kv_tile 64" "$(with 128 "$mask" ', "kv_tile": 64')"
    compare "f8e4m3 D64 B2 H32 $length${mask:+ causal}" "2,32,32,$length,$length" 40 \
      "chosen" "$(with 64 "$mask" "")" \
      "not in turns" "$(with 64 "$mask" ', "take_turns": 0')" \
      "in turns" "$(with 64 "$mask" ', "take_turns": 1')" \
      "128 rows" "$(with 64 "$mask" ', "q_tile": 128')"
    compare "f8e4m3 D256 B2 H8 $length${mask:+ causal}" "2,8,8,$length,$length" 40 \
      "chosen" "$(with 256 "$mask" "")" \
      "in turns" "$(with 256 "$mask" ', "take_turns": 1')" \
      "not in turns" "$(with 256 "$mask" ', "take_turns": 0')" \
      "kv_tile 64" "$(with 256 "$mask" ', "kv_tile": 64')"
  done
  compare "f8e4m3 D128 B2 H16 $length, rows" "2,16,16,$length,$length" 40 \
    "chosen" "$(with 128 "" "")" \
    "192 x 96" "$(with 128 "" ', "q_tile": 192, "kv_tile": 96')" \
    "192 x 96 in turns" "$(with 128 "" ', "q_tile": 192, "kv_tile": 96, "take_turns": 1')" \
    "192 x 64" "$(with 128 "" ', "q_tile": 192, "kv_tile": 64')" \
    "128 x 96" "$(with 128 "" ', "kv_tile": 96')"
fi
compare "dense D128 B2 H16 $length, scales" "2,16,16,$length,$length" 40 \
  "bf16" "{$bf16, \"head_dim\": 128}" \
  "bf16, scales by head" "{$bf16, \"head_dim\": 128, \"q_scale\": \"1.0f\", $by_head}"
compare "dense D128 B2 H16 $length, f32" "2,16,16,$length,$length" 40 \
  f32 '{"dtype": "f32", "head_dim": 128}' \
  tf32 '{"dtype": "f32", "head_dim": 128, "f32_products": "tf32"}'

# A title, then a line for each of its calls. Rounds of a title are asked in turns, on data that stay.
python3 - "$work/titles" "$tilewright" "$device" "$rounds" <<'PYTHON' || failed=1
import json, statistics, subprocess, sys

titles, tilewright, device, rounds = sys.argv[1:]
groups = []
for line in open(titles):
    name, rest = line.strip().split("|", 1)
    if rest.isdigit():
        groups.append((name, []))
    else:
        groups[-1][1].append((name, json.loads(rest)))
program = subprocess.Popen([tilewright, "bench", "--serve", "--keep", "5", "--device", device],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

def ask(request):
    program.stdin.write(json.dumps(request) + "\n")
    program.stdin.flush()
    return json.loads(program.stdout.readline())

failed = False
lines = []
for title, calls in groups:
    times = {name: [] for name, _ in calls}
    rows = {}
    for _ in range(int(rounds)):
        for name, request in calls:
            row = ask(request)
            if "error" in row:
                rows[name] = row
                continue
            rows[name] = row
            times[name].append(row["ms"])
    lines.append(f"\n{title:44} {'us':>10} {'of first':>9} {'GB/s':>7} {'TFLOP/s':>8}  tactic")
    first = None
    for name, _ in calls:
        if "error" in rows[name]:
            failed = True
            lines.append(f"  {name:42} {rows[name]['error']}")
            continue
        ms = statistics.median(times[name])
        first = first or ms
        row = rows[name]
        scaled = row["ms"] / ms
        gbytes = (row.get("kv_gbytes_per_s") or 0) * scaled
        lines.append(f"  {name:42} {ms * 1e3:10.1f} {first / ms:9.3f} {gbytes:7.0f} {row['gflops'] * scaled / 1e3:8.1f}  {row['tactic']}")
program.stdin.close()
program.wait()
print("\n".join(lines))
sys.exit(failed)
PYTHON
echo "$((SECONDS - started)) s in all"
exit $failed
