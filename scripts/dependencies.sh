# Sourced by the other scripts: installs missing Debian packages, with sudo where needed.

# install_missing PACKAGE...
install_missing() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
      missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if ! command -v apt-get >/dev/null; then
    echo "Missing packages (Debian's names): ${missing[*]}" >&2
    echo "This script can install them on Debian and Ubuntu only; install them by hand." >&2
    return 3
  fi
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "Run as root: apt-get install ${missing[*]}" >&2; return 3; }
    as_root=(sudo)
  fi
  echo "Installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  # Offline: a package of a server (nginx, which tests start themselves) starts no service here.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive SYSTEMD_OFFLINE=1 \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

BUILD_PACKAGES=(g++ cmake ninja-build pkg-config libfmt-dev nlohmann-json3-dev libcli11-dev
  libssl-dev libpng-dev libfreetype-dev fonts-dejavu-core)
TEST_PACKAGES=(catch2 git libcurl4 openssl python3)
FULL_TEST_PACKAGES=(dpkg-dev file clang clang-format clang-tidy libclang-rt-14-dev nginx-light abigail-tools valgrind
  rustc)
FUZZ_PACKAGES=(clang libclang-rt-14-dev)
NVRTC_PACKAGES=(python3 python3-venv ca-certificates)

# Whether the loader or a toolkit in /usr/local offers NVRTC 13, where the library looks first.
machine_has_nvrtc() {
  ldconfig -p 2>/dev/null | grep -q 'libnvrtc\.so\.13 ' && return 0
  compgen -G '/usr/local/cuda*/lib64/libnvrtc.so.13' >/dev/null
}

# Without CUDA's run-time compiler the tests of kernels for GPUs have nothing to test, so where it is
# missing the wheel of scripts/nvrtc.txt goes into build/ and TILEWRIGHT_NVRTC names it. Needs neither
# a GPU nor the rest of CUDA. Status 3 where it cannot be had.
provide_nvrtc() {
  [ -n "${TILEWRIGHT_NVRTC:-}" ] && return 0
  machine_has_nvrtc && return 0
  local folder=$PWD/build/nvrtc pip=$PWD/build/pip
  if ! cmp -s scripts/nvrtc.txt "$folder/nvrtc.txt"; then
    install_missing "${NVRTC_PACKAGES[@]}" || return 3
    echo "Installing NVRTC into build/nvrtc (a download of 90 MB)"
    rm -rf "$folder"
    python3 -m venv "$pip" &&
      "$pip/bin/pip" install --quiet --disable-pip-version-check --retries 2 --timeout 20 \
        --no-deps --only-binary :all: --require-hashes --target "$folder" -r scripts/nvrtc.txt &&
      cp scripts/nvrtc.txt "$folder/" || {
      echo "NVRTC, CUDA's run-time compiler, could not be installed from PyPI (see above)." >&2
      echo "Where there is no network, unpack the wheel of scripts/nvrtc.txt on another machine and" >&2
      echo "name its nvidia/cu13/lib in TILEWRIGHT_NVRTC." >&2
      return 3
    }
  fi
  export TILEWRIGHT_NVRTC=$folder/nvidia/cu13/lib
}

# build_with_progress ARGUMENT...: `cmake --build ARGUMENT...` with its progress and an estimate on stderr, one line that
# is written over on a terminal and a line every ten seconds elsewhere. What the build says is shown where it fails.
build_with_progress() {
  local start=$SECONDS last=$SECONDS log line text finished total elapsed
  log=$(mktemp)
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    finished=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]} elapsed=$((SECONDS - start))
    text="Building: $finished of $total, $elapsed s, about $((elapsed * (total - finished) / (finished > 0 ? finished : 1))) s left"
    if [ -t 2 ]; then
      printf '\r%s\033[K' "$text" >&2
    elif [ $((SECONDS - last)) -ge 10 ]; then
      echo "$text" >&2
      last=$SECONDS
    fi
  done < <({ status=0; cmake --build "$@" 2>&1 || status=$?; echo "$status" >"$log.status"; } | tee "$log")
  [ ! -t 2 ] || printf '\r\033[K' >&2
  local status
  status=$(cat "$log.status")
  [ "$status" -eq 0 ] || cat "$log" >&2
  rm -f "$log" "$log.status"
  return "$status"
}
