#!/usr/bin/env bash
# test_guard.sh PROGRAM - the guard's example against a Redis of its own. The
# program checks itself; here it gets a server, and is asked for too little and
# too much. A million requests where SEEN_TEST_SCALE is above 1.
set -euo pipefail
program=$1
requests=50000
[ "${SEEN_TEST_SCALE:-1}" -gt 1 ] && requests=1000000
dir=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; wait; rm -rf "$dir"' EXIT

# Somebody may have the port, or take it before the server does.
for _ in 1 2 3 4 5; do
  port=$((15000 + RANDOM % 5000))
  redis-server --port "$port" --bind 127.0.0.1 --dir "$dir" --save '' \
    --daemonize no --logfile "$dir/log" &
  server=$!
  for _ in $(seq 100); do
    kill -0 "$server" 2>/dev/null || break
    if grep -q 'Ready to accept' "$dir/log" 2>/dev/null; then break 2; fi
    sleep 0.1
  done
  kill "$server" 2>/dev/null || true
  wait "$server" || true
  server=
done
[ "$server" ] || { cat "$dir/log" >&2; exit 1; }

"$program" "$port" "$dir/shop" "$requests"

refused() { # what is wrong, then arguments
  if "$program" "${@:2}" >"$dir/out" 2>&1; then
    echo "not refused: $1" >&2
    exit 1
  fi
}
refused "a directory that is there" "$port" "$dir/shop"
refused "a port where nobody listens" 1 "$dir/other"
refused "no port" x "$dir/another"
refused "too few requests" "$port" "$dir/another" 10
refused "no arguments"
