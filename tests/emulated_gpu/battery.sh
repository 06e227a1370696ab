#!/bin/sh
# battery.sh BATTERY: the battery on the emulated GPU. A few specs; with TILEWRIGHT_TEST_FULL=1 a
# sixteenth of all, another each day (TILEWRIGHT_TEST_SEED). A spec takes about ten seconds.
if [ "${TILEWRIGHT_TEST_FULL:-0}" = 1 ]; then
  part=$((${TILEWRIGHT_TEST_SEED:-$(date -u +%Y%m%d)} % 16))/16
  TILEWRIGHT_TEST_FULL=0 TILEWRIGHT_TEST_PART=$part exec "$1"
fi
exec "$1" alibi_documents mixed_dtypes
