#!/usr/bin/env bash
# install_and_use.sh SOURCE_DIR BUILD_DIR CXX: installs, then builds examples/cpp with find_package and
# with pkg-config from outside the source tree, and runs both.
set -euo pipefail
source_dir=$1 build_dir=$2 cxx=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TILEWRIGHT_CACHE=$work/cache
prefix=$work/prefix

cmake --install "$build_dir" --prefix "$prefix" >/dev/null
cp -r "$source_dir/examples/cpp" "$work/consumer"
cd "$work"

expect_result() {
  local output
  output=$("$1")
  echo "$2: $output"
  # Equal values give the value itself, whatever the weights; 4 x 4 causal tiles hold 10.
  [ "$output" = "out[0] = 0.5, 62 % of the tiles visited" ] || { echo "unexpected output" >&2; exit 1; }
}

cmake -S consumer -B by_cmake -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$cxx" >/dev/null
cmake --build by_cmake >/dev/null
expect_result by_cmake/causal_attention find_package

pc_dir=$(dirname "$(find "$prefix" -name tilewright.pc)")
flags=$(PKG_CONFIG_PATH=$pc_dir pkg-config --static --cflags --libs tilewright)
# shellcheck disable=SC2086
"$cxx" -std=c++20 -Wall -Wextra -Werror consumer/main.cpp $flags -o by_pkg_config
expect_result ./by_pkg_config pkg-config

# The program in the README is this one.
readme_program=$(sed -n '/^```cpp$/,/^```$/p' "$source_dir/README.md" | sed '/^```/d' | head -n "$(wc -l <"$source_dir/examples/cpp/main.cpp")")
diff <(echo "$readme_program") "$source_dir/examples/cpp/main.cpp" >&2 ||
  { echo "the program in README.md differs from examples/cpp/main.cpp" >&2; exit 1; }
echo "README: the same program"

"$prefix"/bin/tilewright --version
