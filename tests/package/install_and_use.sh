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
flags=$(PKG_CONFIG_PATH=$pc_dir pkg-config --cflags --libs tilewright)
# shellcheck disable=SC2086
"$cxx" -std=c++20 -Wall -Wextra -Werror consumer/main.cpp $flags -o by_pkg_config
expect_result ./by_pkg_config pkg-config
# shellcheck disable=SC2086
"$cxx" -std=c++20 consumer/main.cpp $(PKG_CONFIG_PATH=$pc_dir pkg-config --static --cflags --libs tilewright) -o by_static
expect_result ./by_static "pkg-config --static"

# The C ABI: a project of C alone, which finds no C++ package; pkg-config; and the archive, linked as C++.
cp -r "$source_dir/examples/c" c_consumer
cmake -S c_consumer -B c_by_cmake -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build c_by_cmake >/dev/null
expect_result c_by_cmake/causal_attention "find_package, C"
c_flags=$(PKG_CONFIG_PATH=$pc_dir pkg-config --cflags --libs tilewright-c)
# shellcheck disable=SC2086
cc -std=c99 -pedantic -Wall -Wextra -Werror c_consumer/main.c $c_flags -Wl,-rpath,"$(dirname "$pc_dir")" -o c_by_pkg_config
expect_result ./c_by_pkg_config "pkg-config, C"
needed=$(readelf -d c_by_pkg_config | grep NEEDED)
grep -q 'libtilewright.so.1' <<<"$needed" || { echo "$needed" >&2; exit 1; }
cc -std=c99 -c c_consumer/main.c -I"$prefix/include" -o c_static.o
# shellcheck disable=SC2086
"$cxx" c_static.o $flags -o c_by_archive
expect_result ./c_by_archive "the archive, C"
diff <(sed -n '/^```c$/,/^```$/p' "$source_dir/docs/c.md" | sed '/^```/d' | head -n "$(wc -l <"$source_dir/examples/c/main.c")") \
  "$source_dir/examples/c/main.c" >&2 || { echo "the program in docs/c.md differs from examples/c/main.c" >&2; exit 1; }
echo "docs/c.md: the same program"

# Without -std=c++20 there is one error, which says what to do.
echo '#include <tilewright.hpp>' >old_standard.cpp
for standard in c++11 c++14 c++17; do
  # shellcheck disable=SC2086
  "$cxx" -std=$standard -fsyntax-only old_standard.cpp $flags 2>old_standard.log && { echo "$standard was accepted" >&2; exit 1; }
  [ "$(grep -c 'error' old_standard.log)" -le 2 ] && [ "$(grep -c ' error: ' old_standard.log)" -eq 1 ] &&
    grep -q -- '-std=c++20' old_standard.log || { cat old_standard.log >&2; exit 1; }
done
echo "an older C++: one error"

# A project that adds the source tree builds the library and its program, and nothing of verify/, cli/ or tests/.
mkdir added && cp consumer/main.cpp added/
cat >added/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(engine LANGUAGES CXX)
add_subdirectory($source_dir tilewright)
add_executable(engine main.cpp)
target_link_libraries(engine PRIVATE tilewright::tilewright)
END
cmake -S added -B by_source -G Ninja -DCMAKE_CXX_COMPILER="$cxx" >/dev/null
ninja -C by_source -t commands all >by_source.log
if grep -E " -o [^ ]*/(verify|cli|picture|tests)/" by_source.log; then
  echo "add_subdirectory builds what the program does not use" >&2
  exit 1
fi
grep -q 'libtilewright.a' by_source.log
cmake -S added -B with_verify -G Ninja -DTILEWRIGHT_BUILD_VERIFY=ON -DCMAKE_CXX_COMPILER="$cxx" >/dev/null
ninja -C with_verify -t commands all | grep -E " -o [^ ]*/verify/" >/dev/null || { echo "TILEWRIGHT_BUILD_VERIFY=ON builds no verify/" >&2; exit 1; }
echo "add_subdirectory: the library alone"

# The README's C++ is the program of examples/cpp. tests/docs runs it.
diff <(sed -n '/^```cpp title="main.cpp"$/,/^```$/p' "$source_dir/README.md" | sed '/^```/d') "$source_dir/examples/cpp/main.cpp" >&2 ||
  { echo "the program in README.md differs from examples/cpp/main.cpp" >&2; exit 1; }
echo "README: the same program"

# The C++ of docs/cache.md, with the installed headers of the cache.
sed -n '/^## From C++$/,$p' "$source_dir/docs/cache.md" | sed -n '/^```cpp$/,/^```$/p' | sed '/^```/d' >cache.cpp
cat >store.cpp <<END
$(head -n 1 cache.cpp)
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>
void log(std::string_view text) { std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data()); }
std::vector<std::byte> compile(const std::string& source) { return std::vector<std::byte>(source.size()); }
int main() {
  const std::string source = "seven b";
$(tail -n +2 cache.cpp)
  std::printf("%zu bytes\n", entry->payload.size());
}
END
# shellcheck disable=SC2086
"$cxx" -std=c++20 store.cpp $flags -o by_store
[ "$(TILEWRIGHT_CACHE=$PWD/store_cache ./by_store)" = "7 bytes" ] || { echo "the C++ of docs/cache.md fails" >&2; exit 1; }
echo "docs/cache.md: a store alone"

# The spec in the README is this one.
diff <(sed -n '/^```json title="alibi_documents.json"$/,/^```$/p' "$source_dir/README.md" | sed '/^```/d') "$source_dir/examples/alibi_documents.json" >&2 ||
  { echo "the spec in README.md differs from examples/alibi_documents.json" >&2; exit 1; }
echo "README: the same spec"

"$prefix"/bin/tilewright --version
