#!/usr/bin/env bash
# test_merge.sh - seen merge: one filter with the keys of several.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

seq 1 1000 >a.keys; seq 501 1500 >b.keys; seq 3001 3100 >c.keys
seq 1 1500 >ab.keys; seq 10001 11000 >others

for kind in bloom blocked cuckoo scalable set bitmap; do
  n='-n 5000'; case $kind in bitmap) n='' ;; esac
  for f in a b c; do
    # shellcheck disable=SC2086
    "$seen" build -q --kind $kind $n -o $f.$kind $f.keys
  done
  run "$seen" merge -o all.$kind a.$kind b.$kind c.$kind
  expect_code 0; expect_out ''; expect_err "all.$kind: 3 filters, about "
  run "$seen" check -qv all.$kind a.keys b.keys c.keys; expect_code 1
  run "$seen" check -c all.$kind others; expect; [ "$out" -le 20 ] || wrong "too many others"
  run "$seen" verify all.$kind; expect_code 0
  # Over one of the inputs.
  cp a.$kind over.$kind
  run "$seen" merge -q -o over.$kind over.$kind b.$kind; expect_code 0; expect_silent
  run "$seen" check -qv over.$kind ab.keys; expect_code 1
done
# Exactly the filter that all the keys would have made.
"$seen" build -q -n 5000 -o whole ab.keys
run "$seen" merge -q -o both a.blocked b.blocked
payload() { tail -c +2049 "$1"; }
expect; cmp -s <(payload whole) <(payload both) || wrong "the union has other bits"
run "$seen" merge --json -o f a.bitmap c.bitmap; expect_silent; expect_json items 1100; expect_json merged 2
run "$seen" info --json f; expect_json bits 3101
expect; [ "$("$seen" merge -q -o - a.blocked b.blocked | "$seen" check -c - ab.keys)" = 1500 ] || wrong "into a pipe"
run "$seen" merge -q -o f - b.blocked <a.blocked; expect_code 2
expect; "$seen" merge -q -o f - b.blocked <a.blocked || wrong "from stdin"
"$seen" build -q -n 1100 -o x a.keys; "$seen" build -q -n 1100 -o y b.keys
run "$seen" merge -o f x y; expect_err "f: was planned for 1,100 keys: build a larger one"

# ---- What does not go together, by name -------------------------------------

rm -f none
run "$seen" merge -o none a.blocked a.bloom; expect_failure "a.blocked and a.bloom differ in their kind: blocked against bloom"
"$seen" build -q -n 9000 -o other a.keys
run "$seen" merge -o none a.blocked b.blocked other; expect_failure "a.blocked and other differ in their bits: "
"$seen" build -q -n 5000 --kind bloom --bits 80000 --hashes 5 -o k5 a.keys
"$seen" build -q -n 5000 --kind bloom --bits 80000 --hashes 6 -o k6 a.keys
run "$seen" merge -o none k5 k6; expect_failure "k5 and k6 differ in their hashes: 5 against 6"
"$seen" build -q -n 5000 --keyed -o keyed1 a.keys; "$seen" build -q -n 5000 --keyed -o keyed2 b.keys
run "$seen" merge -o none keyed1 keyed2
expect_failure "keyed1 and keyed2 have different secrets: only keyed filters with the same secret can be merged"
run "$seen" merge -o none a.blocked keyed1
expect_failure "a.blocked and keyed1 differ in their hash: xxh3-64 against siphash-1-3-128 (one is keyed, the other is not)"
"$seen" build -q --kind ribbon -o ribbon1 a.keys; "$seen" build -q --kind ribbon -o ribbon2 a.keys
run "$seen" merge -o none ribbon1 ribbon2; expect_failure "filters of kind ribbon cannot be merged: build one from all the keys"
expect_no_file none

# ---- The same secret --------------------------------------------------------

"$seen" build -q -n 5000 --secret-file key -o s1 a.keys; "$seen" build -q -n 5000 --secret-file key -o s2 b.keys
run "$seen" merge -o none s1 s2; expect_failure "s1: its secret is kept apart"
run "$seen" merge -q --secret-file key -o s s1 s2; expect_code 0
run "$seen" check -qv s ab.keys; expect_failure "s: its secret is kept apart" # it still is
run "$seen" check -qv --secret-file key s ab.keys; expect_code 1

# ---- Mistakes ---------------------------------------------------------------

run "$seen" merge a.blocked b.blocked; expect_failure "-o is missing"
run "$seen" merge -o f; expect_failure "expected at least two filter files"
run "$seen" merge -o f a.blocked; expect_failure "expected at least two filter files"
run "$seen" merge -o f a.blocked nowhere; expect_failure "nowhere: no such file"
run "$seen" merge -o f a.blocked a.keys; expect_failure "a.keys:"
run "$seen" merge -o no/such/place a.blocked b.blocked; expect_failure "no/such/place"
run "$seen" merge --help; expect_code 0

finish
