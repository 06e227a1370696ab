#!/usr/bin/env bash
# Builds the wheel of the Python package, installs it into a virtual environment and runs its tests.
#
#   scripts/python_test.sh                with numpy, jax and ONNX Runtime; links build/release where that is built
#   scripts/python_test.sh --with-torch   also the tests against PyTorch (a download of 200 MB to 3 GB)
#   scripts/python_test.sh --with-onnxruntime HEADERS   also ONNX Runtime's operator in C++, which needs build/release and
#                                         the folder of onnxruntime_cxx_api.h: no wheel has it
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/dependencies.sh

packages=(numpy jax onnxruntime onnxruntime-extensions onnx)
onnxruntime_headers=
case "${1:-}" in
  "") ;;
  --with-torch) packages+=(torch) ;;
  --with-onnxruntime) onnxruntime_headers=${2:?the folder of onnxruntime_cxx_api.h} ;;
  *) echo "usage: scripts/python_test.sh [--with-torch | --with-onnxruntime HEADERS]" >&2; exit 2 ;;
esac

install_missing "${BUILD_PACKAGES[@]}" python3 python3-venv python3-dev ca-certificates
venv=$PWD/build/python
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
pip() { "$venv/bin/pip" --quiet --disable-pip-version-check --retries 2 "$@"; }
pip install scikit-build-core nanobind ninja pytest pytest-xdist mypy "${packages[@]}"

settings=(--config-settings=build-dir="$PWD/build/python-wheel")
if [ -f build/release/CMakeCache.txt ]; then
  cmake --build build/release --parallel "$(nproc)" --target tilewright tilewright_verify
  settings+=(--config-settings=cmake.define.TILEWRIGHT_BUILD="$PWD/build/release")
fi
rm -rf build/wheel
pip wheel ./python --no-build-isolation --no-deps --wheel-dir build/wheel "${settings[@]}"
pip install --force-reinstall --no-deps build/wheel/tilewright-*.whl
"$venv/bin/mypy" --config-file python/pyproject.toml -p tilewright
"$venv/bin/python" -m pytest -q --numprocesses "$(nproc)" --dist loadfile python/tests

if [ -n "$onnxruntime_headers" ]; then
  cmake --build build/release --parallel "$(nproc)" --target tilewright_c
  c++ -std=c++20 -O2 -fPIC -shared -fvisibility=hidden -isystem "$onnxruntime_headers" -Ic examples/onnxruntime/operator.cpp \
    -Lbuild/release -ltilewright "-Wl,-rpath,$PWD/build/release" -o build/onnxruntime_operator.so
  "$venv/bin/python" examples/onnxruntime/check.py build/onnxruntime_operator.so
fi

# What a user waits for: a wheel below 5 MB, and an import below 30 ms that brings no framework.
"$venv/bin/python" - build/wheel/tilewright-*.whl <<'FACTS'
import os, subprocess, sys

once = """
import time
begin = time.perf_counter()
import tilewright, sys
print(1e3 * (time.perf_counter() - begin), *({"torch", "jax", "numpy"} & set(sys.modules)))"""
runs = [subprocess.check_output([sys.executable, "-c", once], text=True).split() for _ in range(10)]
size, least = os.path.getsize(sys.argv[1]) / 1e6, min(float(run[0]) for run in runs)
print(f"wheel: {size:.2f} MB, import {least:.1f} ms")
assert size < 5 and least < 30 and not runs[0][1:], runs
FACTS

# The Debian package of the wheel, unpacked into a folder and used from there.
if command -v dpkg-shlibdeps >/dev/null; then
  packaging/python_deb.sh build/wheel/tilewright-*.whl build/wheel
  rm -rf build/wheel/root
  dpkg-deb -x build/wheel/python3-tilewright_*.deb build/wheel/root
  found=$(PYTHONPATH=$PWD/build/wheel/root/usr/lib/python3/dist-packages "$venv/bin/python" -c \
    'import numpy, tilewright as tw; q = numpy.ones((1, 1, 64, 64), numpy.float32); print(tw.__file__, tw.flex_attention(q, q, q).mean())')
  [ "$found" = "$PWD/build/wheel/root/usr/lib/python3/dist-packages/tilewright/__init__.py 1.0" ] ||
    { echo "python3-tilewright: $found" >&2; exit 1; }
  echo "python3-tilewright: used from its package"
fi
