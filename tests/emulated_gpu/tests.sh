#!/bin/sh
# tests.sh PROGRAM: the tests of the emulated GPU that are due today. Tests tagged [each-day] meet every kind of kernel
# and always run. Of the others the short form takes 1 of 7, TILEWRIGHT_TEST_FULL=1 takes 1 of 3, others each day
# (TILEWRIGHT_TEST_SEED), and TILEWRIGHT_TEST_FULL=all takes every test.
set -eu
day=${TILEWRIGHT_TEST_SEED:-$(date -u +%Y%m%d)}
case "${TILEWRIGHT_TEST_FULL:-0}" in
  1) parts=3 ;;
  all) exec "$1" --durations yes -w NoTests ;;
  *) parts=7 ;;
esac
names=$(mktemp)
trap 'rm -f "$names"' EXIT
# Catch2 ends with the number of tests that it lists. A comma in a name would begin another name.
{
  "$1" '[each-day]' --list-test-names-only || true
  "$1" '~[each-day]' --list-test-names-only | awk -v day="$day" -v parts="$parts" 'NR % parts == day % parts' || true
} | sed 's/,/\\,/g' >"$names"
echo "$(wc -l <"$names") tests are due, by the day $day"
"$1" --input-file "$names" --durations yes -w NoTests
