# shellcheck shell=bash
# lib.sh - for the tests of the command line: run, compare, count.
#
#   run COMMAND...   runs it; leaves $out, $err and $code behind
#   expect_...       compare what it left; a difference is printed and counted
#
# Scripts end with `finish`.
set -u
# shellcheck disable=SC2034 # for the scripts that source this
seen=$(realpath "${1:?usage: $0 PATH_OF_SEEN}")
work=$(mktemp -d)
# Not in a child that a signal ends before it has become another program.
trap '[ $BASHPID -ne $$ ] || rm -rf "$work"' EXIT
cd "$work" || exit 2
cases=0
failures=0
out='' err='' code=0 last=''

run() {
  "$@" >"$work/.out" 2>"$work/.err" <"${input:-/dev/null}"
  code=$?
  out=$(tr -d '\0' <"$work/.out") # a shell's variables hold no NUL
  err=$(cat "$work/.err")
  last="$*"
}

wrong() {
  failures=$((failures + 1))
  printf 'FAILED: %s\n  %s\n  exit %s\n  stdout: %s\n  stderr: %s\n' \
    "${last:0:300}" "$1" "$code" "${out:0:300}" "${err:0:300}"
}

expect() { cases=$((cases + 1)); }
expect_code() { expect; [ "$code" -eq "$1" ] || wrong "expected exit code $1"; }
expect_out() { expect; [ "$out" = "$1" ] || wrong "expected stdout: $1"; }
expect_err() { expect; [[ $err == *"$1"* ]] || wrong "expected stderr to say: $1"; }
expect_silent() { expect; [ -z "$err" ] || wrong "expected nothing on stderr"; }

expect_json() { expect; grep -q "\"$1\": $2" "$work/.${3:-out}" || wrong "expected JSON $1: $2"; }
expect_file() { expect; [ -e "$1" ] || wrong "expected a file $1"; }
expect_no_file() { expect; [ ! -e "$1" ] || wrong "expected no file $1"; }

# flip FILE OFFSET: change one byte.
flip() {
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1")
  # shellcheck disable=SC2059 # the byte is the format
  printf "\\x$(printf %02x $((byte ^ 255)))" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}

# begin FILE...: what a program in the background is going to write is not there
# yet. Its shell may not have opened the file when the test looks for the first
# time: what an earlier program has left would be taken for its output.
begin() { rm -f "$@"; }

# wait_for COMMAND...: until it succeeds. A minute in vain is a failure, which is
# counted here: no machine is that busy.
wait_for() {
  for _ in $(seq 1 1200); do "$@" >/dev/null 2>&1 && return; sleep 0.05; done
  wrong "waited in vain for: $*"
  return 1
}

# expect_failure TEXT: exit 2, nothing on stdout, one line on stderr with TEXT.
expect_failure() {
  expect_code 2
  expect_out ''
  expect_err "$1"
  expect
  [ "$(wc -l <"$work/.err")" -eq 1 ] || wrong "expected one line on stderr"
}

# tried N WHAT: say how much of something was tried; script/soak adds these lines up.
tried() { echo "tried $*"; }

finish() {
  tried "$cases" checks
  [ "$failures" -eq 0 ] || echo "$failures of them failed"
  [ "$failures" -eq 0 ]
}
