#!/bin/sh
# battery.sh BATTERY: the battery on the emulated GPU. One of two specs, by the day; with TILEWRIGHT_TEST_FULL=1 a
# part of 32, as tests/support/full_run.hpp counts shares (TILEWRIGHT_TEST_SEED); with TILEWRIGHT_TEST_FULL=all every spec.
# A spec takes about ten seconds.
day=${TILEWRIGHT_TEST_SEED:-$(date -u +%Y%m%d)}
case "${TILEWRIGHT_TEST_FULL:-0}" in
  1) part=$(((day + day / 4) % 32))/32 ;;
  all) part=0/1 ;;
  *)
    [ $((day % 2)) = 0 ] && exec "$1" alibi_documents
    exec "$1" mixed_dtypes
    ;;
esac
TILEWRIGHT_TEST_FULL=0 TILEWRIGHT_TEST_PART=$part exec "$1"
