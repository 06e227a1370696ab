#!/usr/bin/env bash
# Makes a bare Debian 12 in a folder, installs the Debian packages there with apt, and uses them as their reader does:
# the command line, C++ by find_package and by pkg-config, C, and the wheel's flex_attention. Prints the time of each step.
#
#   scripts/clean_root.sh ROOT [WHEEL]     packages of build/debian (scripts/packages.sh); WHEEL of scripts/python_test.sh
#
# ROOT is made by mmdebstrap where it is missing. Needs root, and Debian's mirror.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/dependencies.sh

case $# in
  1 | 2) ;;
  *) echo "usage: scripts/clean_root.sh ROOT [WHEEL]" >&2; exit 2 ;;
esac
root=$(realpath -m "$1") wheel=${2:-}
compgen -G 'build/debian/tilewright_*.deb' >/dev/null || { echo "run scripts/packages.sh first" >&2; exit 2; }

step() {
  local what=$1 begin=$EPOCHREALTIME log
  shift
  log=$(mktemp)
  "$@" >"$log" 2>&1 || { cat "$log" >&2; echo "$what: failed" >&2; exit 1; }
  printf '%6.1f s  %s\n' "$(bc -l <<<"$EPOCHREALTIME - $begin")" "$what"
  rm -f "$log"
}
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
  TILEWRIGHT_DEVICE=cpu chroot "$root" bash -euo pipefail -c "cd /root/try; $1"; }
expect() {
  local output
  output=$(inside "$1")
  [[ $output == *"$2"* ]] || { echo "wanted $2, got $output" >&2; return 1; }
}

install_missing mmdebstrap bc
if [ ! -e "$root/etc/debian_version" ]; then
  step "a bare Debian 12" mmdebstrap --variant=minbase bookworm "$root"
fi
mount -t proc proc "$root/proc"
trap 'umount "$root/proc"' EXIT
rm -rf "$root/root/try"
mkdir -p "$root/root/try"
cp build/debian/*.deb "$root/root/try/"
cp -r examples/cpp examples/c examples/causal.json "$root/root/try/"
cp /etc/resolv.conf "$root/etc/resolv.conf"

step "apt update" inside 'apt-get update -qq'
step "apt install ./tilewright*.deb ./libtilewright*.deb, with a compiler" \
  inside 'apt-get install -y -qq ./tilewright_*.deb ./libtilewright*.deb'
step "tilewright check, first time" expect 'tilewright check causal.json --inputs random:1,8,2,300,300' ok
step "tilewright check, from the cache" expect 'tilewright check causal.json --inputs random:1,8,2,300,300' ok
step "apt install cmake pkg-config" inside 'apt-get install -y -qq --no-install-recommends cmake make pkg-config'
readonly RESULT='out[0] = 0.5, 62 % of the tiles visited'
step "a C++ program by find_package" \
  expect 'cmake -S cpp -B by_cmake >log && cmake --build by_cmake >>log && by_cmake/causal_attention' "$RESULT"
# shellcheck disable=SC2016  # what stands in quotes is expanded inside the root
step "a C++ program by pkg-config" \
  expect 'g++ -std=c++20 -O2 cpp/main.cpp $(pkg-config --cflags --libs tilewright) -o by_pc && ./by_pc' "$RESULT"
# shellcheck disable=SC2016
step "a C program by pkg-config" \
  expect 'gcc -std=c99 c/main.c $(pkg-config --cflags --libs tilewright-c) -o by_c && ./by_c' "$RESULT"

if [ -n "$wheel" ]; then
  cp "$wheel" "$root/root/try/"
  cat >"$root/root/try/five.py" <<'END'
import numpy as np, tilewright as tw
q = k = v = np.random.randn(1, 8, 512, 64).astype(np.float32)
mask = tw.create_block_mask(lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, None, None, 512, 512)
out = tw.flex_attention(q, k, v, lambda score, b, h, q_idx, kv_idx: score * 0.5, mask)
print(out.shape, np.allclose(out[:, :, 0], v[:, :, 0]))
END
  step "apt install python3-venv python3-numpy" \
    inside 'apt-get install -y -qq --no-install-recommends python3-venv python3-numpy'
  step "pip install of the wheel" \
    inside 'python3 -m venv --system-site-packages venv && venv/bin/pip install -q --no-index ./tilewright-*.whl'
  step "five lines of Python" expect 'venv/bin/python five.py' '(1, 8, 512, 64) True'
  if compgen -G 'build/debian/python3-tilewright_*.deb' >/dev/null; then
    step "apt install ./python3-tilewright*.deb" inside 'apt-get install -y -qq ./python3-tilewright_*.deb'
    step "the same lines with Debian's package" expect 'python3 five.py' '(1, 8, 512, 64) True'
  fi
fi
# shellcheck disable=SC2016
step "apt purge" inside 'apt-get purge -y -qq $(dpkg-query -W "*tilewright*" | cut -f 1)
  [ -z "$(find /usr -name "*tilewright*" -print -quit)" ]'
