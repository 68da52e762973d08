#!/usr/bin/env bash
# test_packages.sh SOURCE_DIR - build the four packages twice, in different
# directories, and compare every byte; then, in a clean Debian 12, install them,
# build programs with pkg-config and with find_package, load the module into the
# stock redis-server, and remove everything again.
#
# Where a clean Debian cannot be made (not root, no debootstrap, no mirror) the
# packages are unpacked into an empty directory instead, and the summary says so.
set -euo pipefail
source=$(realpath "${1:?usage: $0 SOURCE_DIR}")
work=$(mktemp -d)
root=$work/debian
clean_up() {
  mountpoint -q "$root/proc" 2>/dev/null && umount "$root/proc"
  rm -rf "$work"
}
trap clean_up EXIT
say() { printf '   %s\n' "$*"; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# ---- The same bytes, wherever they are built ---------------------------------

for copy in one another/place; do
  mkdir -p "$work/$copy"
  git -C "$source" ls-files -coz --exclude-standard |
    (cd "$source" && xargs -0 tar -cf - --ignore-failed-read 2>/dev/null) | tar -C "$work/$copy" -xf -
  SOURCE_DATE_EPOCH=1700000000 "$work/$copy/script/package" "$work/$copy/packages" >/dev/null
done
for package in "$work"/one/packages/*.deb; do
  cmp "$package" "$work/another/place/packages/${package##*/}" ||
    fail "${package##*/} differs when it is built in another directory"
done
packages=$(cd "$work/one/packages" && echo *.deb)
[ "$(wc -w <<<"$packages")" -eq 4 ] || fail "expected four packages, found: $packages"
say "four packages, the same bytes from two directories"

# ---- A clean system, or what is nearest to it ---------------------------------

clean_debian() {
  [ "$(id -u)" -eq 0 ] || { why="only root can make one"; return 1; }
  command -v debootstrap >/dev/null || { why="debootstrap is not installed"; return 1; }
  local mirror
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 2>/dev/null |
    awk '$2 == "bookworm" { print $1; exit }')
  [ -n "$mirror" ] || { why="apt-get knows no mirror of Debian 12"; return 1; }
  debootstrap --variant=minbase bookworm "$root" "$mirror" >"$work/log" 2>&1 ||
    { why="debootstrap failed: $(tail -n 1 "$work/log")"; return 1; }
  cp /etc/resolv.conf "$root/etc/"
  mount -t proc proc "$root/proc" || { why="/proc cannot be mounted"; return 1; }
}

if ! clean_debian; then
  say "clean Debian: skipped, because $why"
  for package in $packages; do dpkg-deb -x "$work/one/packages/$package" "$work/flat"; done
  printf 'a\nb\na\n' | "$work/flat/usr/bin/seen" uniq | cmp - <(printf 'a\nb\n') ||
    fail "the unpacked program does not work"
  say "unpacked into a directory, the program works"
  exit 0
fi

# inside COMMAND: in the clean system, quietly; its output when it fails.
inside() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive \
    chroot "$root" bash -euo pipefail -c "$*" >"$work/log" 2>&1 ||
    { tail -n 30 "$work/log" >&2; fail "in a clean Debian: $*"; }
}
files() { (cd "$root" && find etc usr -not -path 'usr/share/doc/*' -not -path '*/__pycache__*' | sort); }

# The tools that programs are built with, and a server; not ours.
inside 'apt-get update -qq
  apt-get install -y -qq --no-install-recommends gcc libc6-dev make cmake pkg-config redis-server \
    liblmdb-dev libhiredis-dev libzstd1 zlib1g liblzma5 libbz2-1.0
  ldconfig'
files >"$work/before"

mkdir "$root/seen"
cp "$work"/one/packages/*.deb "$root/seen/"
cp "$source"/examples/0[15]_*.c "$root/seen/"
inside 'apt-get install -y -qq --no-install-recommends /seen/*.deb'
say "they install with apt-get"

inside 'cd /seen
  cc 01_hello.c -o hello $(pkg-config --cflags --libs seen)
  ./hello | grep "alice.*maybe"
  cc 05_take.c -o take $(pkg-config --cflags --libs seen_store)
  ./take feed1 | grep "visit 2: news goal"
  ldd take | grep libseen_store.so.0'
say "programs build and run with pkg-config"

cat >"$root/seen/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(hello C)
find_package(seen 0.1 REQUIRED)
add_executable(hello 01_hello.c)
target_link_libraries(hello PRIVATE seen::seen_shared)
add_executable(take 05_take.c)
target_link_libraries(take PRIVATE seen::seen_store_static)
EOF
inside 'cd /seen
  cmake -S . -B build && cmake --build build
  build/hello | grep "alice.*maybe"
  build/take feed2 | grep "visit 2: news goal"'
say "and with find_package"

inside 'cd /seen
  test "$(printf "a\nb\na\n" | seen uniq)" = "$(printf "a\nb")"
  seen take lmdb:feed3 user -n 1 <<<post | grep post
  seen --version'
say "the program works"

port=$((15000 + RANDOM % 5000))
inside "cd /seen
  redis-server /usr/share/doc/seen-redis/examples/seen-redis.conf --port $port \\
    --daemonize yes --dir /seen --logfile /seen/log
  ask='redis-cli -p $port'
  for try in \$(seq 50); do \$ask PING >/dev/null 2>&1 && break; sleep 0.1; done
  cat log
  test \"\$(\$ask BF.ADD filter item)\" = 1
  test \"\$(\$ask SEEN.TAKE user COUNT 1 post)\" = post
  \$ask SHUTDOWN NOSAVE || true"
say "the stock redis-server loads the module from where it was installed"

inside 'apt-get purge -y -qq seen seen-redis libseen-dev libseen0'
files >"$work/after"
diff "$work/before" "$work/after" >&2 || fail "purged, but something was left behind or taken along"
say "purged, nothing is left"
