#!/usr/bin/env bash
# shared_library.sh SOURCE_DIR CXX: builds and installs the library with BUILD_SHARED_LIBS=ON and uses it by find_package
# and pkg-config.
set -euo pipefail
source_dir=$1 cxx=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TILEWRIGHT_CACHE=$work/cache TILEWRIGHT_DEVICE=cpu
cd "$work"
prefix=$work/prefix

cmake -S "$source_dir" -B build -G Ninja -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON \
  -DBUILD_SHARED_LIBS=ON -DTILEWRIGHT_BUILD_CLI=OFF -DTILEWRIGHT_BUILD_TESTS=OFF -DCMAKE_CXX_FLAGS_RELEASE=-O0 >/dev/null
cmake --build build >build.log || { tail -n 40 build.log >&2; exit 1; }
cmake --install build --prefix "$prefix" >/dev/null

expect_result() {
  local output
  output=$("$1")
  [ "$output" = "out[0] = 0.5, 62 % of the tiles visited" ] || { echo "$2: $output" >&2; exit 1; }
  readelf -d "$1" | grep -q 'NEEDED.*libtilewright_cpp\.so\.[0-9]*\.[0-9]*\]' ||
    { readelf -d "$1" >&2; echo "$2: the program does not name the library with its version" >&2; exit 1; }
  echo "$2: $output"
}
cp -r "$source_dir/examples/cpp" consumer
cmake -S consumer -B by_cmake -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" >/dev/null
cmake --build by_cmake >/dev/null
expect_result by_cmake/causal_attention "find_package, shared"
pc_dir=$(dirname "$(find "$prefix" -name tilewright.pc)")
# shellcheck disable=SC2046
"$cxx" -std=c++20 consumer/main.cpp $(PKG_CONFIG_PATH=$pc_dir pkg-config --cflags --libs tilewright) \
  -Wl,-rpath,"$(dirname "$pc_dir")" -o by_pkg_config
expect_result ./by_pkg_config "pkg-config, shared"
