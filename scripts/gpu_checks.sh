# Calls that `tilewright check` compares with the double-precision reference, several at a time; for scripts that source
# this file, which lies beside them. It reads $tilewright, $device and $work, a folder, and JOBS (8): how many run at once.
checks_begun=0
checks_started=$SECONDS

# run_check NUMBER NAME INPUTS FLAGS
run_check() {
  local file=$work/check_$1
  # shellcheck disable=SC2086
  if "$tilewright" check "$file.json" --inputs "random:$3" --device "$device" $4 >"$file.log" 2>&1; then
    echo "ok      $2 ($3) $4" >"$file.result"
  else
    {
      echo "WRONG   $2 ($3) $4"
      grep -v '^render\|^compile\|^load\|^\[' "$file.log" | head -20
    } >"$file.result"
  fi
}

# check NAME INPUTS FLAGS SPEC: starts it
check() {
  checks_begun=$((checks_begun + 1))
  printf '%s' "$4" >"$work/check_$checks_begun.json"
  while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-8}" ]; do wait -n || true; done
  run_check $checks_begun "$1" "$2" "$3" &
}

# Waits for those that were started since the last time, and prints their results. False where one is wrong.
report_checks() {
  local number right=true
  wait
  for ((number = 1; number <= checks_begun; ++number)); do
    cat "$work/check_$number.result"
    grep -q '^ok' "$work/check_$number.result" || right=false
  done
  echo "$checks_begun checks in $((SECONDS - checks_started)) s"
  checks_begun=0 checks_started=$SECONDS
  $right
}
