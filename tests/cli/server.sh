# shellcheck shell=bash
# server.sh - for the scripts that run `seen server`: lib.sh, and ports, up, down.
#
# Ports 10000 to 14999 are the scripts' own, so that nobody takes them between a stop
# and the next start: servers of tests/server/lib.py listen at 15000 to 19999, each
# kind's clusters 10000 above, and outgoing connections begin at 32768. CTest runs
# one of the scripts at a time.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

base=$((10000 + RANDOM % 4900))

taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# free_ports N: $port is the first of N in a row that nobody listens at.
free_ports() {
  local n
  port=$base
  for ((n = 0; n < $1; n++)); do
    if taken $((port + n)) || taken $((port + n + 10000)); then
      port=$((port + n + 1))
      n=-1
    fi
  done
  base=$((port + $1))
}

# up ARGUMENT...: start it at $port, and wait until it says how to connect.
up() {
  : >up.out
  "$seen" server --port "$port" "$@" >up.out 2>up.err &
  pid=$!
  wait_for grep -q 'ctrl-C' up.out || {
    last="seen server $*" err=$(cat up.err)
    wrong "not up"
    tail -n 5 ./*/*/log
  }
}

down() { kill -TERM "$pid"; wait "$pid"; code=$?; }
