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
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
cases=0
failures=0
out='' err='' code=0

run() {
  "$@" >"$work/.out" 2>"$work/.err" <"${input:-/dev/null}"
  code=$?
  out=$(cat "$work/.out")
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

# expect_failure TEXT: exit 2, nothing on stdout, one line on stderr with TEXT.
expect_failure() {
  expect_code 2
  expect_out ''
  expect_err "$1"
  expect
  [ "$(wc -l <"$work/.err")" -eq 1 ] || wrong "expected one line on stderr"
}

finish() {
  echo "$cases checks, $failures failed"
  [ "$failures" -eq 0 ]
}
