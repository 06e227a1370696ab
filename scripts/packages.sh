#!/usr/bin/env bash
# Builds the Debian packages libtilewright1, libtilewright-dev and tilewright into build/debian.
#
#   scripts/packages.sh            those three
#   scripts/packages.sh WHEEL      also python3-tilewright, of a wheel that scripts/python_test.sh made
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/dependencies.sh

[ $# -le 1 ] || { echo "usage: scripts/packages.sh [WHEEL]" >&2; exit 2; }
install_missing "${BUILD_PACKAGES[@]}" dpkg-dev file
# With /usr as its prefix the library looks for its executable where the package puts it.
cmake -S . -B build/packages -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON \
  -DCMAKE_INSTALL_PREFIX=/usr -DTILEWRIGHT_BUILD_TESTS=OFF >/dev/null
build_with_progress build/packages --parallel "$(nproc)"
mkdir -p build/debian
(cd build/packages && cpack -G DEB -B "$PWD/../debian" >/dev/null)
[ $# -eq 0 ] || packaging/python_deb.sh "$1" build/debian
ls build/debian/*.deb
