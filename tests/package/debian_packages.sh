#!/usr/bin/env bash
# debian_packages.sh SOURCE_DIR BUILD_DIR CXX: makes the Debian packages of a build, unpacks them into a folder as dpkg
# does into /, and uses the executable, the C++ archive and the C library from there.
set -euo pipefail
source_dir=$1 build_dir=$2 cxx=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TILEWRIGHT_CACHE=$work/cache TILEWRIGHT_DEVICE=cpu
fail() { echo "$*" >&2; exit 1; }

(cd "$build_dir" && cpack -G DEB -B "$work/debs" >/dev/null)
version=$("$build_dir/cli/tilewright" --version)
version=${version#tilewright }
packages=$(cd "$work/debs" && echo *.deb)
architecture=$(dpkg --print-architecture)
wanted=
for package in libtilewright-dev libtilewright1 tilewright; do
  wanted+=${wanted:+ }${package}_${version}_$architecture.deb
done
[ "$packages" = "$wanted" ] || fail "the packages are $packages"

declare -A owner
for package in "$work"/debs/*.deb; do
  dpkg-deb -x "$package" "$work/root"
  # dpkg refuses a file of two packages.
  while read -r file; do
    [ -z "${owner[$file]:-}" ] || fail "$file is in $(basename "$package") and in ${owner[$file]}"
    owner[$file]=$(basename "$package")
  done < <(dpkg-deb -c "$package" | awk '!/^d/ {print $6}')
done
depends=$(dpkg-deb -f "$work/debs/libtilewright-dev_${version}_$architecture.deb" Depends)
[[ $depends == *"libtilewright1 (= $version)"* ]] || fail "libtilewright-dev depends on: $depends"
depends=$(dpkg-deb -f "$work/debs/tilewright_${version}_$architecture.deb" Depends)
[[ $depends == *libpng* && $depends == *libssl* ]] || fail "tilewright depends on: $depends"
echo "packages: $packages"

usr=$work/root/usr
[ "$("$usr/bin/tilewright" --version)" = "tilewright $version" ] || fail "the executable has another version"
"$usr/bin/tilewright" check "$usr/share/doc/tilewright/examples/causal.json" --inputs random:1,2,1,70,70 >"$work/check.log" ||
  fail "$(cat "$work/check.log")"
grep -q '^\.TH TILEWRIGHT 1' "$usr/share/man/man1/tilewright.1" || fail "no manual page"
for file in bash-completion/completions/tilewright zsh/vendor-completions/_tilewright fish/vendor_completions.d/tilewright.fish; do
  [ -s "$usr/share/$file" ] || fail "no $file"
done
echo "the executable: right, with its manual and completions"

expect_result() {
  local output
  output=$("$1")
  [ "$output" = "out[0] = 0.5, 62 % of the tiles visited" ] || fail "$2: $output"
  echo "$2: $output"
}
cd "$work"
cp -r "$source_dir/examples/cpp" consumer
cmake -S consumer -B by_cmake -G Ninja -DCMAKE_PREFIX_PATH="$usr" -DCMAKE_CXX_COMPILER="$cxx" >/dev/null
cmake --build by_cmake >/dev/null
expect_result by_cmake/causal_attention find_package
pc_dir=$(dirname "$(find "$usr" -name tilewright.pc)")
# shellcheck disable=SC2046
"$cxx" -std=c++20 consumer/main.cpp $(PKG_CONFIG_PATH=$pc_dir pkg-config --cflags --libs tilewright) -o by_pkg_config
expect_result ./by_pkg_config pkg-config
library_dir=$(dirname "$pc_dir")
# shellcheck disable=SC2046
cc -std=c99 "$source_dir/examples/c/main.c" $(PKG_CONFIG_PATH=$pc_dir pkg-config --cflags --libs tilewright-c) \
  -Wl,-rpath,"$library_dir" -o by_c
expect_result ./by_c "the C library"
