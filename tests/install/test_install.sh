#!/usr/bin/env bash
# test_install.sh BUILD_DIR SOURCE_DIR - install into a fresh prefix, move it, then build
# and run a program against it with pkg-config, static and shared, and with
# CMake's find_package.
set -euo pipefail
build=$(realpath "${1:?usage: $0 BUILD_DIR SOURCE_DIR}")
source=$(realpath "${2:?usage: $0 BUILD_DIR SOURCE_DIR}")
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT

# Into a prefix that is not the build's; then the tree moves.
cmake --install "$build" --prefix "$prefix/first" >/dev/null
usr=$prefix/usr
mv "$prefix/first" "$usr"
libdir=$(dirname "$(find "$usr" -name libseen.so)")
export PKG_CONFIG_PATH=$libdir/pkgconfig

says_maybe() { # the output of 01_hello
  [[ $1 == *alice*maybe* ]] || { echo "the program printed: $1" >&2; exit 1; }
}

# shellcheck disable=SC2046
cc "$source/examples/01_hello.c" -o "$prefix/shared" $(pkg-config --cflags --libs seen)
says_maybe "$(LD_LIBRARY_PATH=$libdir "$prefix/shared")"
linked=$(LD_LIBRARY_PATH=$libdir ldd "$prefix/shared")
[[ $linked == *libseen.so.0* ]] || { echo "no libseen.so.0: $linked" >&2; exit 1; }

# shellcheck disable=SC2046
cc "$source/examples/01_hello.c" -o "$prefix/static" $(pkg-config --cflags seen) "$libdir/libseen.a" -lm
says_maybe "$("$prefix/static")"
linked=$(ldd "$prefix/static")
[[ $linked != *seen* ]] || { echo "not static: $linked" >&2; exit 1; }

takes_once() { # the output of 05_take
  [[ $1 == *"visit 2: news goal"* ]] || { echo "the program printed: $1" >&2; exit 1; }
}
# shellcheck disable=SC2046
cc "$source/examples/05_take.c" -o "$prefix/store" $(pkg-config --cflags --libs seen_store)
takes_once "$(LD_LIBRARY_PATH=$libdir "$prefix/store" "$prefix/feed")"
linked=$(LD_LIBRARY_PATH=$libdir ldd "$prefix/store")
[[ $linked != *hiredis* ]] || { echo "an embedded store loads hiredis: $linked" >&2; exit 1; }
# shellcheck disable=SC2046
cc "$source/examples/05_take.c" -o "$prefix/store-static" $(pkg-config --cflags seen_store) \
  "$libdir/libseen_store.a" "$libdir/libseen.a" -llmdb -lm -pthread
takes_once "$("$prefix/store-static" "$prefix/feed-static")"

# On a server: a program links, and says that none is there.
cat >"$prefix/remote.c" <<'EOF'
#include <seen_remote.h>
#include <stdio.h>

int main(void)
{
    seen_users *users;
    seen_error error;
    seen_status status = seen_remote_users(&users, "redis://127.0.0.1:1", NULL, NULL, &error);
    puts(error.text);
    return status != SEEN_IO;
}
EOF
# shellcheck disable=SC2046
cc "$prefix/remote.c" -o "$prefix/remote" $(pkg-config --cflags --libs seen_remote)
LD_LIBRARY_PATH=$libdir "$prefix/remote" >/dev/null
cc "$prefix/remote.c" -I"$usr/include" -o "$prefix/remote-static" "$libdir/libseen_remote.a" \
  "$libdir/libseen_store.a" "$libdir/libseen.a" -llmdb -lhiredis -lm -pthread
"$prefix/remote-static" >/dev/null

if [ -e "$libdir/pkgconfig/seen_leveldb.pc" ]; then
  cat >"$prefix/policy.c" <<'EOF'
#include <leveldb/c.h>
#include <seen_leveldb.h>

int main(void)
{
    leveldb_filterpolicy_t *policy = seen_leveldb_policy(SEEN_BLOCK_SORTED, 10);
    leveldb_filterpolicy_destroy(policy);
    return policy == NULL;
}
EOF
  # shellcheck disable=SC2046
  cc "$prefix/policy.c" -o "$prefix/policy" $(pkg-config --cflags --libs seen_leveldb)
  LD_LIBRARY_PATH=$libdir "$prefix/policy"
fi

mkdir "$prefix/project"
cp "$source"/examples/0[15]_*.c "$prefix/project/"
cat >"$prefix/project/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(hello C)
find_package(seen 0.1 REQUIRED)
add_executable(hello 01_hello.c)
target_link_libraries(hello PRIVATE seen::seen_shared)
add_executable(take 05_take.c)
target_link_libraries(take PRIVATE seen::seen_store_shared)
add_executable(take_static 05_take.c)
target_link_libraries(take_static PRIVATE seen::seen_store_static)
EOF
cmake -S "$prefix/project" -B "$prefix/project/build" -DCMAKE_PREFIX_PATH="$usr" >/dev/null
cmake --build "$prefix/project/build" >/dev/null
says_maybe "$("$prefix/project/build/hello")"
takes_once "$("$prefix/project/build/take" "$prefix/feed-cmake")"
takes_once "$("$prefix/project/build/take_static" "$prefix/feed-cmake-static")"

# The installed examples build by themselves, with the installed library.
examples=$usr/share/doc/seen/examples
cmake -S "$examples" -B "$prefix/examples" -DCMAKE_PREFIX_PATH="$usr" >/dev/null
cmake --build "$prefix/examples" -j2 >/dev/null
says_maybe "$("$prefix/examples/example_01_hello")"
ran=$(ctest --test-dir "$prefix/examples" -R '0[1-5]_') ||
  { echo "the installed examples fail their tests: $ran" >&2; exit 1; }

# Redis 7 loads a module only if it may be executed.
[ ! -e "$libdir/seen/seen.so" ] || [ -x "$libdir/seen/seen.so" ] ||
  { echo "seen.so is not executable" >&2; exit 1; }
# The unit of `seen server`: not changed when the tree moves, so the build's prefix.
grep -q '^ExecStart=/.*/bin/seen server ' "$usr/lib/systemd/system/seen-server.service" ||
  { echo "no unit for systemd" >&2; exit 1; }

# Documents, manual pages and completions, where people, man and shells look.
for file in doc/seen/README.md doc/seen/docs/COMMANDS.md man/man1/seen.1 man/man1/seen-uniq.1 man/man3/seen.3 man/man7/seen-redis.7 \
  bash-completion/completions/seen zsh/site-functions/_seen fish/vendor_completions.d/seen.fish; do
  [ -s "$usr/share/$file" ] || { echo "share/$file is missing" >&2; exit 1; }
done

[ "$("$usr/bin/seen" --version)" = "seen $(pkg-config --modversion seen)" ]
echo "installed library and program work"
