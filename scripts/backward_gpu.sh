#!/usr/bin/env bash
# backward_gpu.sh TILEWRIGHT [DEVICE [FIGURES [PART...]]]: gradients on a GPU, each compared with the double-precision reference, then
# tables of times. Ends with status 1 if a gradient is wrong.
#
# FIGURES  other libraries' figures for the last table, or /dev/null: JSON lines with D, S, causal and a number for each library,
#          {"D": 128, "S": 8192, "causal": false, "cudnn": 525}, TFLOP/s of 10 B H S S D, of which a causal mask keeps half
# JOBS     how many checks run at a time (8)
# PATTERNS of indices, in the table of buffers' gradients (slopes column row bias shared_bias own)
# PART     hopper: checks of sm_90a's own kernels; sums: of those that sum gradients of buffers and scalars; portable: of all
#          others; packed: of packed calls, and their table beside dense ones;
#          wide: of sm_90a's kernels with head dims above 128, and their table;
#          fixed: checks deterministic calls of sm_90a's kernels, compares the bits of 100 calls, and prints their cost;
#          table: Hopper's kernel, the portable one and FIGURES; dims: both kernels at other head dims; learnt: what a buffer's gradient costs;
#          variants: bench --suite backward. Without one: all
set -euo pipefail
tilewright=$1 device=${2:-cuda} figures=${3:-/dev/null}
shift $(($# < 3 ? $# : 3))
parts=${*:-hopper wide fixed sums portable packed table dims learnt variants}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

. "$(dirname "$0")/gpu_checks.sh"

all='"outputs": ["out", "lse"], "gradients": ["q", "k", "v"]'
causal='"mask_mod": "q_idx >= kv_idx"'
patterns='"score_mod": "cap * tanh(score / cap) + slopes[h] * (kv_idx - q_idx) + bias[clamp(kv_idx - q_idx, -200, 200) + 200] * column[kv_idx] + row[q_idx] + own(h, q_idx, kv_idx)",
  "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"], "range": [0, 0.01]}, "bias": {"dtype": "f32", "shape": [401]},
    "column": {"dtype": "bf16", "shape": ["kv_len"]}, "row": {"dtype": "f32", "shape": ["q_len"]},
    "own": {"dtype": "f32", "shape": ["num_q_heads", "q_len", "kv_len"]}},
  "scalars": {"cap": {"dtype": "f32", "default": 20}},
  "outputs": ["out", "lse"], "gradients": ["q", "k", "v", "slopes", "bias", "column", "row", "own", "cap"]'

packed='"layout": "packed"'

has() { [[ " $parts " == *" $1 "* ]]; }

check_portable() {
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
}

check_packed() {
  for dtype in bf16 f16 f32; do
    for head_dim in 64 128 256; do
      check "packed_${dtype}_$head_dim" 4,2/300:413,1:700,0:5,129:129x3 "" "{\"dtype\": \"$dtype\", \"head_dim\": $head_dim, $packed, $all}"
      check "packed_causal_${dtype}_$head_dim" 4,1/517:517,64:64x5,3:900 "" "{\"dtype\": \"$dtype\", \"head_dim\": $head_dim, $packed, $causal, $all}"
    done
    [[ $dtype == f32 ]] || check_packed_tiles "$dtype"
    for flags in "" --deterministic; do
      check "packed_patterns_$dtype$flags" 4,2/300:413,70:70x4 "$flags" "{\"dtype\": \"$dtype\", \"head_dim\": 128, $packed, $causal,
        \"score_mod\": \"cap * tanh(score / cap) + slopes[h] * (kv_idx - q_idx) + bias[clamp(kv_idx - q_idx, -200, 200) + 200]\",
        \"buffers\": {\"slopes\": {\"dtype\": \"f32\", \"shape\": [\"num_q_heads\"], \"range\": [0, 0.01]}, \"bias\": {\"dtype\": \"f32\", \"shape\": [401]}},
        \"scalars\": {\"cap\": {\"dtype\": \"f32\", \"default\": 20}}, \"outputs\": [\"out\", \"lse\"], \"gradients\": [\"q\", \"k\", \"v\", \"slopes\", \"bias\", \"cap\"]}"
    done
  done
}

# Lengths around a tile's, empty sequences, and what Hopper's kernel sums.
check_packed_tiles() {
  local dims slopes='"buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"], "range": [0, 0.01]}}'
  local edges=1:1,63:127,64:128,65:129,0:40,128:64,40:0,127:63,129:65,1:700
  for dims in 64,64 96,96 128,128 40,112 192,128 192,192 256,256; do
    local head="\"dtype\": \"$1\", \"head_dim\": ${dims%,*}, \"v_head_dim\": ${dims#*,}, $packed"
    check "packed_edges_${1}_$dims" 4,2/$edges "" "{$head, $all}"
    check "packed_edges_causal_${1}_$dims" 4,2/$edges "" "{$head, $causal, $all}"
    check "packed_many_${1}_$dims" 4,1/70:90x130 "" "{$head, $causal, $all}"
    check "packed_long_${1}_$dims" 2,2/4500:4500,1:1 "" "{$head, \"mask_mod\": \"abs(q_idx - kv_idx) < 300 || h == 1\", $all}"
    check "packed_softcap_${1}_$dims" 4,2/$edges "" "{$head, $causal, \"score_mod\": \"20.0 * tanh(score / 20.0)\", $all}"
    check "packed_slopes_${1}_$dims" 4,2/$edges "" "{$head, $causal, \"score_mod\": \"score + slopes[h] * (kv_idx - q_idx)\", $slopes,
      \"outputs\": [\"out\", \"lse\"], \"gradients\": [\"q\", \"k\", \"v\", \"slopes\"]}"
  done
}

# Each shape that Hopper's kernel has, ragged and whole, few and many rows; and the portable kernel on the same calls.
check_hopper() {
  local fixed='"buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"], "range": [0, 0.01]}}'
  for dtype in bf16 f16; do
    for head_dim in 64 128; do
      local head="\"dtype\": \"$dtype\", \"head_dim\": $head_dim"
      for shape in 1,1,1,64,128 1,1,1,128,128 2,4,2,300,413 1,2,2,1,129 1,2,1,1024,1024; do
        check "hopper_plain_${dtype}_$head_dim" $shape "" "{$head, $all}"
      done
      for shape in 1,4,1,517,517 2,2,2,1024,1024 1,8,2,300,2048; do
        check "hopper_causal_${dtype}_$head_dim" $shape "" "{$head, $causal, $all}"
      done
      check "hopper_softcap_${dtype}_$head_dim" 1,2,1,517,517 "" "{$head, $causal, \"score_mod\": \"20.0 * tanh(score / 20.0)\", $all}"
      check "hopper_alibi_${dtype}_$head_dim" 1,2,1,517,517 "" "{$head, $causal, \"score_mod\": \"score + slopes[h] * (kv_idx - q_idx)\", $fixed, $all}"
      check "hopper_window_${dtype}_$head_dim" 1,2,1,700,700 "" "{$head, \"mask_mod\": \"abs(q_idx - kv_idx) < 70\", $all}"
      check "hopper_dead_${dtype}_$head_dim" 2,2,2,300,300 "--q-offset 3" "{$head, \"mask_mod\": \"q_idx % 5 != 0 && kv_idx > 150 && q_idx < 250\", $all}"
      check "hopper_bshd_${dtype}_$head_dim" 2,4,2,300,300 "" "{$head, \"layout\": \"bshd\", $all}"
      check "hopper_deterministic_${dtype}_$head_dim" 1,2,1,300,413 --deterministic "{$head, $causal, $all}"
    done
    for dims in 16,16 40,40 48,48 72,72 80,80 96,96 112,112 128,64 64,128 40,96; do
      local head="\"dtype\": \"$dtype\", \"head_dim\": ${dims%,*}, \"v_head_dim\": ${dims#*,}"
      check "hopper_dims_${dtype}_$dims" 2,4,2,300,413 "" "{$head, $all}"
      check "hopper_dims_causal_${dtype}_$dims" 1,2,1,517,517 "" "{$head, $causal, $all}"
    done
  done
}

# Head dims that warpgroups share.
check_wide() {
  for dtype in bf16 f16; do
    for dims in 192,128 192,192 256,256 128,192 136,200 248,72 64,256 152,40; do
      local head="\"dtype\": \"$dtype\", \"head_dim\": ${dims%,*}, \"v_head_dim\": ${dims#*,}"
      for shape in 1,1,1,64,64 1,2,1,1,129 2,4,2,300,413 1,2,1,1024,1024; do
        check "wide_${dtype}_${dims}_$shape" $shape "" "{$head, $all}"
      done
      check "wide_causal_${dtype}_$dims" 1,8,2,517,517 "" "{$head, $causal, $all}"
      check "wide_softcap_${dtype}_$dims" 1,2,1,517,517 "" "{$head, $causal, \"score_mod\": \"20.0 * tanh(score / 20.0)\", $all}"
      check "wide_dead_${dtype}_$dims" 2,2,2,300,300 "--q-offset 3" "{$head, \"mask_mod\": \"q_idx % 5 != 0 && kv_idx > 150 && q_idx < 250\", $all}"
      check "wide_bshd_${dtype}_$dims" 2,4,2,300,300 "" "{$head, \"layout\": \"bshd\", $all}"
    done
  done
}

# masks of deterministic calls, each with its name
fixed_masks=(full causal window documents)
mask_of() {
  case $1 in
    full) ;;
    causal) echo "$causal, " ;;
    window) echo '"mask_mod": "abs(q_idx - kv_idx) < 300 || kv_idx < 20", ' ;;
    documents) echo '"mask_mod": "q_idx / 700 == kv_idx / 700 && q_idx >= kv_idx", ' ;;
  esac
}

check_fixed() {
  local dims mask shape
  for dims in 64,64 128,128 256,256 72,80 192,128 64,256; do
    local head="\"dtype\": \"bf16\", \"head_dim\": ${dims%,*}, \"v_head_dim\": ${dims#*,}"
    for mask in "${fixed_masks[@]}"; do
      for shape in 2,4,2,300,413 1,8,2,1500,1500; do
        check "fixed_${mask}_$dims" $shape --deterministic "{$head, $(mask_of "$mask")$all}"
      done
    done
    check "fixed_dead_$dims" 2,2,2,300,300 "--deterministic --q-offset 3" "{$head, \"mask_mod\": \"q_idx % 5 != 0 && kv_idx > 150 && q_idx < 250\", $all}"
    check "fixed_by_head_$dims" 1,4,2,900,900 --deterministic "{$head, \"mask_mod\": \"h == 1 || abs(q_idx - kv_idx) < 70\", $all}"
    check "fixed_blocks_$dims" 1,2,1,517,700 --deterministic "{$head, \"block\": [128, 256], $causal, $all}"
    check "fixed_softcap_$dims" 1,2,1,517,517 --deterministic "{$head, $causal, \"score_mod\": \"20.0 * tanh(score / 20.0)\", $all}"
  done
}

# equal_bits NAME SPEC INPUTS: 100 deterministic calls
equal_bits() {
  printf '%s' "$2" >"$work/bits.json"
  if "$tilewright" bench --suite backward --device "$device" --spec "$work/bits.json" --inputs "random:$3" --deterministic \
    --budget-ms 20 --repeats 100 --json >/dev/null 2>"$work/bits.log"; then
    echo "ok      equal bits: $1 ($3)"
  else
    echo "WRONG   equal bits: $1 ($3)"
    tail -3 "$work/bits.log"
    failed=1
  fi
}

check_fixed_bits() {
  local dims mask
  for dims in 64,64 128,128 192,128 256,256; do
    for mask in "${fixed_masks[@]}"; do
      equal_bits "d$dims $mask" "{\"dtype\": \"bf16\", \"head_dim\": ${dims%,*}, \"v_head_dim\": ${dims#*,}, $(mask_of "$mask")$all}" 2,8,4,4096,4096
    done
  done
}

# learnt PATTERN GRADIENTS: score_mod and buffers with an index of that pattern, and the gradients ("" or a list that begins with a comma)
learnt() {
  local names='"outputs": ["out", "lse"], "gradients": ["q", "k", "v"'$2']'
  case $1 in
    slopes) echo '"score_mod": "score + slopes[h] * (kv_idx - q_idx)", "buffers": {"slopes": {"dtype": "f32", "shape": ["num_q_heads"], "range": [0, 0.01]}}, '"$names" ;;
    column) echo '"score_mod": "score + x[kv_idx]", "buffers": {"x": {"dtype": "bf16", "shape": ["kv_len"]}}, '"$names" ;;
    row) echo '"score_mod": "score + x(b, q_idx) * (kv_idx % 3)", "buffers": {"x": {"dtype": "f32", "shape": ["batch", "q_len"]}}, '"$names" ;;
    bias) echo '"score_mod": "score + x(h, clamp(kv_idx - q_idx, -8191, 8191) + 8191)", "buffers": {"x": {"dtype": "f32", "shape": ["num_q_heads", 16383]}}, '"$names" ;;
    shared_bias) echo '"score_mod": "score + x[clamp(q_idx - kv_idx, -500, 500) + 500]", "buffers": {"x": {"dtype": "f32", "shape": [1001]}}, '"$names" ;;
    own) echo '"score_mod": "score + x[(q_idx * 7 + kv_idx) % 10007]", "buffers": {"x": {"dtype": "f32", "shape": [10007]}}, '"$names" ;;
  esac
}

# Each pattern of an index, ragged and whole, under masks, with groups of heads; and several reads of one kernel.
check_sums() {
  for dtype in bf16 f16; do
    for head_dim in 64 128; do
      local head="\"dtype\": \"$dtype\", \"head_dim\": $head_dim"
      for pattern in slopes column row bias shared_bias own; do
        local name=x
        [[ $pattern == slopes ]] && name=slopes
        check "sums_${pattern}_${dtype}_$head_dim" 2,4,2,300,413 "" "{$head, $(learnt $pattern ", \"$name\"")}"
        check "sums_causal_${pattern}_${dtype}_$head_dim" 1,4,1,1024,1024 "" "{$head, $causal, $(learnt $pattern ", \"$name\"")}"
        check "sums_window_${pattern}_${dtype}_$head_dim" 1,2,2,700,700 "--q-offset 3" "{$head, \"mask_mod\": \"abs(q_idx - kv_idx) < 70 && q_idx % 5 != 0\", $(learnt $pattern ", \"$name\"")}"
      done
      check "sums_several_${dtype}_$head_dim" 2,4,2,300,413 "" "{$head, $causal,
        \"score_mod\": \"score + slopes[h] * (kv_idx - q_idx) + gain * (q_idx % 3) + column[kv_idx] + bias[clamp(kv_idx - q_idx, -200, 200) + 200]\",
        \"buffers\": {\"slopes\": {\"dtype\": \"f32\", \"shape\": [\"num_q_heads\"], \"range\": [0, 0.01]}, \"column\": {\"dtype\": \"f32\", \"shape\": [\"kv_len\"]},
          \"bias\": {\"dtype\": \"bf16\", \"shape\": [401]}},
        \"scalars\": {\"gain\": {\"dtype\": \"f32\", \"default\": 0.5}},
        \"outputs\": [\"out\", \"lse\"], \"gradients\": [\"q\", \"k\", \"v\", \"slopes\", \"column\", \"bias\", \"gain\"]}"
    done
  done
}

# rate NAME SPEC INPUTS FLAGS: TFLOP/s
rate() {
  printf '%s' "$2" >"$work/$1.json"
  # shellcheck disable=SC2086
  "$tilewright" bench --suite backward --device "$device" --spec "$work/$1.json" --inputs "$3" ${4:-} --json 2>/dev/null |
    sed -n 's/^.*"gflops": *\([0-9.e+]*\).*$/\1/p' | head -1 | awk '{ printf "%.0f", $1 / 1000 }'
}

# figure D S CAUSAL: what FIGURES say of a call
figure() {
  awk -v d="$1" -v s="$2" -v causal="$3" '
    $0 ~ "\"D\": *" d "[,}]" && $0 ~ "\"S\": *" s "[,}]" && $0 ~ "\"causal\": *" causal "[,}]" {
      line = $0
      while (match(line, /"[a-z0-9_]+": *[0-9.]+/)) {
        pair = substr(line, RSTART, RLENGTH); line = substr(line, RSTART + RLENGTH)
        gsub(/"/, "", pair)
        if (pair !~ /^(D|S|B|H|fwd_tflops|causal)/) printf "%s; ", pair
      }
    }' "$figures"
}

table() {
  echo "backward, TFLOP/s, 16384 tokens, 2048 / head_dim heads, bf16"
  printf '%-22s | %8s | %8s | %s\n' call hopper portable others
  for head_dim in 128 64; do
    for length in 2048 8192 16384; do
      for mask in full causal; do
        local keep="" is_causal=false
        [[ $mask == causal ]] && keep="$causal, " is_causal=true
        local spec="\"dtype\": \"bf16\", \"head_dim\": $head_dim, $keep$all"
        local inputs="random:$((16384 / length)),$((2048 / head_dim)),$((2048 / head_dim)),$length,$length"
        printf '%-22s | %8s | %8s | %s\n' "d$head_dim $length $mask" "$(rate own "{$spec}" "$inputs")" \
          "$(rate portable "{$spec, \"tactic\": {\"name\": \"portable\"}}" "$inputs")" "$(figure $head_dim $length $is_causal)"
      done
    done
  done
}

# dims_table DIMS...: head_dim, or "head_dim,v_head_dim"
dims_table() {
  echo "backward at other head dims, TFLOP/s, 16384 tokens, 8192 rows, 2048 / head_dim heads, bf16"
  printf '%-16s | %8s | %8s | %s\n' call hopper portable others
  for dims; do
    local head_dim=${dims%,*}
    for mask in full causal; do
      local keep="" is_causal=false
      [[ $mask == causal ]] && keep="$causal, " is_causal=true
      local spec="\"dtype\": \"bf16\", \"head_dim\": $head_dim, \"v_head_dim\": ${dims#*,}, $keep$all"
      local inputs="random:2,$((2048 / head_dim)),$((2048 / head_dim)),8192,8192"
      printf '%-16s | %8s | %8s | %s\n' "d$dims $mask" "$(rate own "{$spec}" "$inputs")" \
        "$(rate portable "{$spec, \"tactic\": {\"name\": \"portable\"}}" "$inputs")" "$(figure $dims 8192 $is_causal)"
    done
  done
}

# Deterministic calls and others, and how much longer the first take.
fixed_table() {
  echo "deterministic backward, TFLOP/s, 2048 / head_dim heads, bf16"
  printf '%-26s | %8s | %13s | %8s\n' call any deterministic longer
  local call dims mask length any fixed
  for call in {64,128}/{8192,16384}/{full,causal} {64,128}/8192/{window,documents} 256/8192/{full,causal}; do
    IFS=/ read -r dims length mask <<<"$call"
    local spec heads=$((2048 / dims))
    spec="{\"dtype\": \"bf16\", \"head_dim\": $dims, $(mask_of "$mask")$all}"
    local inputs="random:$((16384 / length)),$heads,$heads,$length,$length"
    any=$(rate any "$spec" "$inputs")
    fixed=$(rate fixed "$spec" "$inputs" --deterministic)
    printf '%-26s | %8s | %13s | %7s%%\n' "d$dims $length $mask" "$any" "$fixed" \
      "$(awk -v any="$any" -v fixed="$fixed" 'BEGIN { if (fixed > 0) printf "%.0f", (any / fixed - 1) * 100 }')"
  done
}

# Packed calls by Hopper's kernel and the portable one, and dense calls of as many sequences of equal lengths.
packed_table() {
  echo "packed backward, TFLOP/s, 2048 / head_dim heads, bf16"
  printf '%-32s | %8s | %8s | %8s\n' call hopper portable dense
  for dims in 128,128 64,64 192,128; do
    local head_dim=${dims%,*}
    local heads=$((2048 / head_dim))
    for mask in full causal; do
      local keep=""
      [[ $mask == causal ]] && keep="$causal, "
      local spec="\"dtype\": \"bf16\", \"head_dim\": $head_dim, \"v_head_dim\": ${dims#*,}, $keep$all"
      for sequences in 16384x1 8192x2 2048x8 1024x16 256x64 mixed; do
        local lengths=${sequences%x*}:${sequences%x*}x${sequences#*x} dense=-
        if [[ $sequences == mixed ]]; then
          lengths=8192:8192,4096:4096,2048:2048,1024:1024,128:128x8
        else
          dense=$(rate dense "{$spec}" "random:${sequences#*x},$heads,$heads,${sequences%x*},${sequences%x*}")
        fi
        printf '%-32s | %8s | %8s | %8s\n' "d$dims $sequences $mask" "$(rate own "{$spec, $packed}" "random:$heads,$heads/$lengths")" \
          "$(rate portable "{$spec, $packed, \"tactic\": {\"name\": \"portable\"}}" "random:$heads,$heads/$lengths")" "$dense"
      done
    done
  done
}

# Without a score_mod, with one that reads a buffer, and with the buffer's gradient; by Hopper's kernel and by the portable one.
learnt_table() {
  echo "gradients of buffers, TFLOP/s, 16384 tokens, 8192 rows, 2048 / head_dim heads, bf16"
  printf '%-24s | %8s | %8s | %8s | %8s\n' call plain fixed learnt portable
  for head_dim in 128 64; do
    local inputs="random:2,$((2048 / head_dim)),$((2048 / head_dim)),8192,8192"
    for mask in full causal; do
      local keep=""
      [[ $mask == causal ]] && keep="$causal, "
      local head="\"dtype\": \"bf16\", \"head_dim\": $head_dim, $keep" plain
      plain=$(rate plain "{$head$all}" "$inputs")
      for pattern in ${PATTERNS:-slopes column row bias shared_bias own}; do
        local name=x
        [[ $pattern == slopes ]] && name=slopes
        printf '%-24s | %8s | %8s | %8s | %8s\n' "d$head_dim $mask $pattern" "$plain" \
          "$(rate fixed "{$head$(learnt $pattern "")}" "$inputs")" \
          "$(rate learnt "{$head$(learnt $pattern ", \"$name\"")}" "$inputs")" \
          "$(rate learnt_portable "{$head$(learnt $pattern ", \"$name\""), \"tactic\": {\"name\": \"portable\"}}" "$inputs")"
      done
    done
  done
}

variants() {
  for head_dim in 128 64; do
    for length in 2048 8192; do
      "$tilewright" bench --suite backward --device "$device" --head-dim "$head_dim" --q-len "$length"
    done
  done
}

if has hopper; then check_hopper; fi
if has wide; then check_wide; fi
if has fixed; then check_fixed; fi
if has sums; then check_sums; fi
if has portable; then check_portable; fi
if has packed; then check_packed; fi
report_checks || failed=1
if has fixed; then check_fixed_bits; fi
if has table; then table; fi
if has packed; then packed_table; fi
if has dims; then dims_table ${DIMS:-16 32 48 64 72 80 96 112 128}; fi
if has wide; then dims_table 192,128 192 256; fi
if has learnt; then learnt_table; fi
if has variants; then variants; fi
if has fixed; then fixed_table; fi
exit $failed
