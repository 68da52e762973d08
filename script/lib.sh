# shellcheck shell=bash
# lib.sh - what the scripts share; sourced, not run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '== %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 2; }

# need_packages GROUP...: install what is missing of these groups of
# script/packages, as root or through sudo; silent when nothing is.
need_packages() {
  command -v dpkg-query >/dev/null || return 0 # not Debian: hope for the best
  local group package packages missing=()
  for group in "$@"; do
    read -ra packages < <(sed -n "s/^$group: *//p" script/packages)
    for package in "${packages[@]}"; do
      dpkg-query -W -f='${Status}' "$package" 2>/dev/null |
        grep -q '^install ok installed' || missing+=("$package")
    done
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null ||
      die "missing packages and neither root nor sudo: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
      --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "apt-get could not install: ${missing[*]}"
  fi
  rm -f "$log"
}

jobs_wanted() { getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2; }

# build_in DIR [cmake options]: configure and build, quiet unless it fails.
build_in() {
  local dir=$1 log
  shift
  log=$(mktemp)
  if ! { cmake -S . -B "$dir" "$@" && cmake --build "$dir" -j "$(jobs_wanted)"; } \
    >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    rm -f "$log"
    die "the build in $dir failed"
  fi
  rm -f "$log"
}

# test_in DIR [ctest options]: CTest with its own summary; no test at all is an error.
test_in() {
  local dir=$1
  shift
  ctest --test-dir "$dir" --output-on-failure --no-tests=error -j "$(jobs_wanted)" "$@"
}
