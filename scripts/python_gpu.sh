#!/usr/bin/env bash
# The Python package on a GPU, and a table at the end. For a machine with a GPU, PyTorch, nvcc's C++ compiler and pip, but
# no registry of packages and nothing of what a build of the library needs:
#
#   scripts/python_gpu.sh pack BUILD FOLDER       where BUILD (tilewright, tilewright_verify, tilewright_cli) was made
#   bash FOLDER/python_gpu.sh FOLDER [PART]...    on the machine with the GPU, with its own python3
#
# A wheel for that python3 is made from the carried sdist and BUILD's archives (half a minute on 16 cores). Parts: cuda
# (bf16, side stream, torch.compile, opcheck, graph capture, gradients), vllm (examples/vllm on CUDA tensors), speed
# (flex_attention beside the command line at B2 H16 S8192 D128; host times): these three without one, 4 minutes at
# most. ranks: sequences over two GPUs by torchrun, over NCCL; jax: a call inside jax.jit; battery: the mods of the
# battery on CUDA tensors; sdist: the wheel, the library included, from the sdist alone. OUT=FOLDER keeps logs.
# WHEEL_SECONDS=N gives the wheel more time, for fewer cores.
# TILEWRIGHT_TEST_TORCH_DEVICE=cpu tries all but speed, streams and graphs without a GPU.
set -u

if [ "${1:-}" = pack ]; then
  set -e
  [ $# -eq 3 ] || { echo "usage: $0 pack BUILD FOLDER" >&2; exit 2; }
  root=$(cd "$(dirname "$0")/.." && pwd)
  build=$(cd "$2" && pwd)
  rm -rf "$3"
  mkdir -p "$3"/{lib,library,deps/include,deps/lib/cmake,deps/share/cmake,bench,python,examples}
  folder=$(cd "$3" && pwd)
  cp "$0" "$build/cli/tilewright" "$folder/"
  cp "$build"/libtilewright.a "$build"/libtilewright_verify.a "$folder/library/"
  ldd "$build/cli/tilewright" | awk '/libfmt|libcrypto|libpng|libfreetype|libbrotli|libz\./ {print $3}' |
    while read -r library; do cp -L "$library" "$folder/lib/"; done
  # The headers and archives that a build of the module asks CMake for.
  libraries=/usr/lib/$(gcc -dumpmachine)
  cp -r /usr/include/{fmt,nlohmann,openssl} "$folder/deps/include/"
  cp -r "/usr/include/$(gcc -dumpmachine)/openssl/." "$folder/deps/include/openssl/"
  cp -L "$libraries"/{libcrypto.a,libssl.a} "$folder/deps/lib/"
  cp -rL /usr/share/cmake/nlohmann_json "$folder/deps/share/cmake/"
  venv=$root/build/python
  [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check scikit-build-core nanobind
  "$venv/bin/pip" install --quiet --disable-pip-version-check --target "$folder/site" scikit-build-core nanobind
  (cd "$root/python" && "$venv/bin/python" -c "
import sys
sys.path.insert(0, 'build_backend')
import tilewright_build
tilewright_build.build_sdist('$folder')")
  cp -r "$root"/python/{tests,gpu_tests,pyproject.toml} "$folder/python/"
  cp -r "$root"/examples/{vllm,context_parallel} "$folder/examples/"
  cp "$root/bench/peers.py" "$folder/bench/"
  find "$folder" -name __pycache__ -prune -exec rm -rf {} +
  git -C "$root" describe --always --dirty --abbrev=7 --exclude '*' >"$folder/COMMIT"
  du -sh "$folder"
  exit 0
fi

[ $# -ge 1 ] && [ -d "$1" ] || { sed -n 2,16p "$0"; exit 2; }
folder=$(cd "$1" && pwd)
shift
parts=" ${*:-cuda vllm speed} "
logs=${OUT:-$(mktemp -d)}
work=$(mktemp -d)
mkdir -p "$logs"
device=${TILEWRIGHT_TEST_TORCH_DEVICE:-cuda}
python=${PYTHON:-python3}
export TILEWRIGHT_TEST_TORCH_DEVICE=$device TILEWRIGHT_DEVICE=$device TILEWRIGHT_CACHE=$work/cache PYTHONDONTWRITEBYTECODE=1
table=()
started=$SECONDS
wants() { [[ $parts == *" $1 "* ]]; }

# step NAME LIMIT COMMAND...: runs, shows the end of the log, adds a line to the table
step() {
  local name=$1 limit=$2 log status verdict=ok begin=$SECONDS
  shift 2
  log=$logs/${name//[^a-z0-9]/_}.log
  echo "== $name ($((SECONDS - started)) s)"
  timeout --kill-after=20 "$limit" "$@" >"$log" 2>&1
  status=$?
  [ $status -eq 0 ] || verdict="FAILED ($status)"
  [ $status -eq 124 ] && verdict="TIMED OUT"
  grep -v '^[[:space:]]*$' "$log" | tail -n $((status == 0 ? ${LINES_SHOWN:-3} : 60))
  table+=("$(printf '%-22s %-12s %3d s  %s' "$name" "$verdict" $((SECONDS - begin)) \
    "$(grep -v '^[[:space:]]*$' "$log" | tail -n 1 | cut -c 1-110)")")
  return $status
}

# wheel NAME OPTION...: a wheel of the sdist for this python3, in $work/NAME
wheel() {
  local name=$1 setting settings=()
  shift
  for setting in "build-dir=$work/build-$name" "cmake.define.CMAKE_PREFIX_PATH=$folder/deps" \
    "cmake.define.OPENSSL_ROOT_DIR=$folder/deps" "cmake.define.fmt_DIR=$work/fmt" "$@"; do
    settings+=(--config-settings="$setting")
  done
  PYTHONPATH=$folder/site "$python" -m pip wheel --no-index --no-deps --no-build-isolation --wheel-dir "$work/$name" \
    "${settings[@]}" "$folder"/tilewright-*.tar.gz
}

# What fmt's own package files would say; the module brings a copy of its functions (c/fmt_copy.cpp).
mkdir -p "$work/fmt" "$work/lib"
cat >"$work/fmt/fmt-config.cmake" <<CONFIG
foreach(name fmt fmt-header-only)
  add_library(fmt::\${name} INTERFACE IMPORTED)
  set_target_properties(fmt::\${name} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "$folder/deps/include")
endforeach()
set_target_properties(fmt::fmt-header-only PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
CONFIG

echo "$(date -u '+%Y-%m-%d %H:%M UTC'), commit $(cat "$folder/COMMIT"), $(nvidia-smi --query-gpu=name,driver_version \
  --format=csv,noheader 2>/dev/null || echo 'no GPU'), $(nproc) cores, $("$python" --version)," \
  "torch $("$python" -c 'import torch; print(torch.__version__)')"
export -f wheel
export python folder work
step wheel "${WHEEL_SECONDS:-150}" bash -c 'wheel wheel cmake.define.TILEWRIGHT_BUILD="$folder/library"' &&
  step install 60 "$python" -m pip install --no-index --no-deps --target "$work/site" "$work"/wheel/*.whl || parts=" "
export PYTHONPATH=$work/site
[ "$parts" = " " ] || step "wheel's facts" 60 "$python" -c "
import glob, os, subprocess, sys
name, = glob.glob('$work/wheel/*.whl')
begin = 'import time; t = time.perf_counter(); import tilewright; print(1e3 * (time.perf_counter() - t))'
best = min(float(subprocess.check_output([sys.executable, '-c', begin])) for _ in range(5))
print(f'{os.path.basename(name)} {os.path.getsize(name) / 1e6:.2f} MB (bar 5), import {best:.1f} ms (bar 30)')
sys.exit(os.path.getsize(name) >= 5e6 or best >= 30)"
# A library that the machine has is better than one that was carried along.
for library in "$folder"/lib/*; do
  ldconfig -p 2>/dev/null | grep -q "$(basename "$library") " || cp "$library" "$work/lib/"
done
printf '#!/bin/sh\nLD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec %s "$@"\n' \
  "$work/lib" "$folder/tilewright" >"$work/tilewright"
chmod +x "$work/tilewright" "$folder/tilewright"

pytest() { step "$1" "$2" "$python" -m pytest -q -p no:cacheprovider --durations=5 "${@:3}"; }
chosen=()
[ "$device" = cpu ] && chosen=(-k "not stream and not graph_ and not cuda_graph")
wants cuda && pytest "torch on $device" 150 "$folder/python/gpu_tests/test_cuda.py" ${chosen[@]+"${chosen[@]}"}
wants vllm && pytest "examples/vllm" 100 "$folder/python/tests/test_vllm.py"
wants jax && pytest "jax on cuda" 100 "$folder/python/gpu_tests/test_jax_cuda.py"
if wants ranks; then
  cpu=()
  [ "$device" = cpu ] && cpu=(cpu)
  for program in python/gpu_tests/ranks.py examples/context_parallel/torchrun.py; do
    LINES_SHOWN=20 step "$(basename $program)" 120 "$python" -m torch.distributed.run --nproc-per-node 2 \
      "$folder/$program" ${cpu[@]+"${cpu[@]}"}
  done
fi
wants battery && pytest "battery on $device" 400 "$folder/python/tests/test_battery_torch.py"
if wants speed; then
  LINES_SHOWN=12 step speed 120 "$python" "$folder/python/gpu_tests/speed.py" --device "$device" \
    --tilewright "$work/tilewright" --peers "$folder/bench" ${SPEED_ARGUMENTS:-}
  speed=$logs/speed.log
fi
wants sdist && step "wheel of the sdist alone" 300 bash -c 'wheel whole'

echo
printf '%s\n' "${table[@]}"
[ -z "${speed:-}" ] || grep '^|' "$speed"
echo "$((SECONDS - started)) s in all; logs in $logs"
printf '%s\n' "${table[@]}" | grep -q -e FAILED -e 'TIMED OUT' && exit 1
exit 0
