#!/usr/bin/env bash
# Builds the wheel of the Python package, installs it into a virtual environment and runs its tests.
#
#   scripts/python_test.sh                with numpy and jax; links build/release where that is built
#   scripts/python_test.sh --with-torch   also the tests against PyTorch (a download of 200 MB to 3 GB)
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/dependencies.sh

packages=(numpy jax)
case "${1:-}" in
  "") ;;
  --with-torch) packages+=(torch) ;;
  *) echo "usage: scripts/python_test.sh [--with-torch]" >&2; exit 2 ;;
esac

install_missing "${BUILD_PACKAGES[@]}" python3 python3-venv python3-dev ca-certificates
venv=$PWD/build/python
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
pip() { "$venv/bin/pip" --quiet --disable-pip-version-check --retries 2 "$@"; }
pip install scikit-build-core nanobind ninja pytest mypy "${packages[@]}"

settings=(-C build-dir="$PWD/build/python-wheel")
if [ -f build/release/CMakeCache.txt ]; then
  cmake --build build/release --parallel "$(nproc)" --target tilewright tilewright_verify
  settings+=(-C cmake.define.TILEWRIGHT_BUILD="$PWD/build/release")
fi
rm -rf build/wheel
pip wheel ./python --no-build-isolation --no-deps --wheel-dir build/wheel "${settings[@]}"
pip install --force-reinstall --no-deps build/wheel/tilewright-*.whl
"$venv/bin/mypy" --config-file python/pyproject.toml -p tilewright
"$venv/bin/python" -m pytest -q python/tests
