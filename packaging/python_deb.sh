#!/usr/bin/env bash
# python_deb.sh WHEEL FOLDER: makes FOLDER/python3-tilewright_VERSION_ARCHITECTURE.deb of a wheel. Debian's python3 is of
# one version, so the wheel has to be built with it.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: python_deb.sh WHEEL FOLDER" >&2; exit 2; }
wheel=$1 folder=$2
name=$(basename "$wheel")
[[ $name =~ ^tilewright-([0-9.]+)-cp3([0-9]+)- ]] || { echo "$name is no wheel of tilewright" >&2; exit 2; }
version=${BASH_REMATCH[1]} minor=${BASH_REMATCH[2]}
architecture=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"  # mktemp's 700 would become the mode of /

packages=$root/usr/lib/python3/dist-packages
mkdir -p "$packages" "$root/DEBIAN"
python3 -m zipfile -e "$wheel" "$packages"
# zipfile drops the mode of the executable that compiles for the module.
find "$packages/tilewright" -name tilewright -type f -exec chmod 755 {} +
# What the module links, as dpkg-shlibdeps finds it: that wants a source package.
mkdir "$root/debian"
printf 'Source: tilewright\n\nPackage: python3-tilewright\nArchitecture: any\n' >"$root/debian/control"
libraries=$(cd "$root" && dpkg-shlibdeps -O --ignore-missing-info usr/lib/python3/dist-packages/tilewright/_core*.so 2>/dev/null)
rm -r "$root/debian"
cat >"$root/DEBIAN/control" <<END
Package: python3-tilewright
Version: $version
Architecture: $architecture
Maintainer: Tilewright's maintainers <tilewright@localhost>
Section: python
Priority: optional
Depends: python3 (>= 3.$minor), python3 (<< 3.$((minor + 1))), ${libraries#shlibs:Depends=}
Recommends: g++ | c++-compiler
Suggests: python3-numpy
Description: Attention kernels from C++ snippets: Python package
 FlexAttention's calls for numpy, torch and jax arrays.
END
# As dh_python3 has it: modules are compiled when they are installed, and what was compiled goes with them.
cat >"$root/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
if [ "$1" = configure ] && command -v py3compile >/dev/null; then py3compile -p python3-tilewright; fi
END
cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if command -v py3clean >/dev/null; then py3clean -p python3-tilewright; fi
END
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm"
dpkg-deb --root-owner-group --build "$root" "$folder/python3-tilewright_${version}_$architecture.deb" >/dev/null
