#!/bin/sh
# tests.sh PROGRAM: the tests of the emulated GPU that are due today (TILEWRIGHT_TEST_SEED), others each day. Tests tagged
# [every-kind] meet every kind of kernel: TILEWRIGHT_TEST_FULL=1 takes 1 of 3 of them and 1 of 8 of the others, the short
# form 1 of 4 and 1 of 12, and TILEWRIGHT_TEST_FULL=all takes every test.
set -eu
day=${TILEWRIGHT_TEST_SEED:-$(date -u +%Y%m%d)}
case "${TILEWRIGHT_TEST_FULL:-0}" in
  1) of_kinds=3 of_others=8 ;;
  all) exec "$1" --durations yes -w NoTests ;;
  *) of_kinds=4 of_others=12 ;;
esac
names=$(mktemp)
trap 'rm -f "$names"' EXIT
# due PROGRAM PATTERN PARTS: Catch2 ends with the number of tests that it lists.
due() {
  { "$1" "$2" --list-test-names-only || true; } | awk -v day="$day" -v parts="$3" 'NR % parts == day % parts'
}
# A comma in a name would begin another name.
{
  due "$1" '[every-kind]' $of_kinds
  due "$1" '~[every-kind]' $of_others
} | sed 's/,/\\,/g' >"$names"
echo "$(wc -l <"$names") tests are due, by the day $day"
"$1" --input-file "$names" --durations yes -w NoTests
