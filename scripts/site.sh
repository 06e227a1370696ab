#!/usr/bin/env bash
# Builds the documentation's site into build/site/html: the pages as they are, and a gallery of the examples.
#
#   scripts/site.sh            builds it; needs build/release
#   scripts/site.sh --serve    and serves it on http://127.0.0.1:8000
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/dependencies.sh

case "${1:-}" in
  "" | --serve) ;;
  *) echo "usage: scripts/site.sh [--serve]" >&2; exit 2 ;;
esac

install_missing "${BUILD_PACKAGES[@]}" python3 python3-venv ca-certificates git
tilewright=build/release/cli/tilewright
[ -x "$tilewright" ] || { cmake --preset release >/dev/null; build_with_progress --preset release --target tilewright_cli; }
venv=build/site/python
[ -x "$venv/bin/mkdocs" ] || { python3 -m venv "$venv"; "$venv/bin/pip" install -q --disable-pip-version-check mkdocs-material; }
python3 scripts/site_pages.py . build/site/pages "$tilewright"
NO_MKDOCS_2_WARNING=1 "$venv/bin/mkdocs" build --quiet --strict --config-file mkdocs.yml
echo "build/site/html/index.html"
[ "${1:-}" != --serve ] || python3 -m http.server --bind 127.0.0.1 --directory build/site/html 8000
