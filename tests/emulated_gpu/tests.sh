#!/bin/sh
# tests.sh PROGRAM: the tests of the emulated GPU that are due today (TILEWRIGHT_TEST_SEED), others each day. Tests tagged
# [every-kind] meet every kind of kernel: 1 of 8 of them is due, and 1 of 24 of the others. TILEWRIGHT_TEST_FULL=all takes
# every test.
set -eu
day=${TILEWRIGHT_TEST_SEED:-$(date -u +%Y%m%d)}
[ "${TILEWRIGHT_TEST_FULL:-0}" != all ] || exec "$1" --durations yes -w NoTests
names=$(mktemp)
trap 'rm -f "$names"' EXIT
# due PROGRAM PATTERN PARTS: Catch2 ends with the number of tests that it lists.
due() {
  { "$1" "$2" --list-test-names-only || true; } | awk -v day="$day" -v parts="$3" 'NR % parts == day % parts'
}
# A comma in a name would begin another name.
{
  due "$1" '[every-kind]' 8
  due "$1" '~[every-kind]' 24
} | sed 's/,/\\,/g' >"$names"
echo "$(wc -l <"$names") tests are due, by the day $day"
"$1" --input-file "$names" --durations yes -w NoTests
