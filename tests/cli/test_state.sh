#!/usr/bin/env bash
# test_state.sh - seen uniq --state: what one run has printed, no later one does.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

seq 1 1000 >first; seq 501 1500 >second; seq 1001 1500 >fresh

# ---- Created when missing, continued otherwise ------------------------------

run "$seen" uniq --state s first; expect_code 0; expect_silent; expect; cmp -s .out first || wrong "the first run"
run "$seen" uniq --state s second; expect; cmp -s .out fresh || wrong "the second run"
run "$seen" uniq --state s first second; expect_code 0; expect_out ''
run "$seen" uniq -d -c --state s first; expect_out 1000
run "$seen" info --json s; expect_json kind '"set"'; expect_json items 1500; expect_json journal false
run "$seen" verify s; expect_code 0
expect; [ -z "$(find . -name '*journal*')" ] || wrong "a journal after closing"
printf 'x\nX\nx\n' >repeats
run "$seen" uniq --state s repeats; expect_out $'x\nX' # repeats within one chunk, too
run "$seen" uniq --json --state s first; expect_json known_before 1502 err; expect_json state '"s"' err
run "$seen" check -qv s first; expect_code 1 # it is a filter like any other
"$seen" build -q --kind set -o made first
run "$seen" uniq --state made second; expect; cmp -s .out fresh || wrong "what build made"

# -c tells what would be printed, and remembers nothing: a later run prints it. -d
# remembers what it reads.
run "$seen" uniq -c --state uncounted first; expect_out 1000; expect_err "uncounted: not found: counted as if it were empty"
expect_no_file uncounted
run "$seen" uniq -c --state uncounted --secret-file unmade first; expect_out 1000; expect_no_file unmade
"$seen" uniq --state counted first >/dev/null; before=$(sha256sum counted; stat -c '%i %Y' counted)
for options in "" -d -j3 --json; do
  # shellcheck disable=SC2086
  run "$seen" uniq -c $options --state counted second second; expect_code 0; expect_silent
  expect; [ "$(sha256sum counted; stat -c '%i %Y' counted)" = "$before" ] || wrong "-c has changed the state"
  case $options in
  -d) expect_out 1500 ;;
  --json) expect_json unique 500; expect_json known_before 1000; expect_json state '"counted"' ;;
  *) expect_out 500 ;;
  esac
done
run "$seen" uniq --state counted second; expect; cmp -s .out fresh || wrong "lines that -c has seen are lost"
run "$seen" uniq -d --state repeated first; expect_out ''
run "$seen" uniq -d --state repeated second; expect; cmp -s .out <(seq 501 1000) || wrong "repeats of an earlier run"

# In every mode, with any number of threads, in three pieces.
awk 'BEGIN { srand(7); for (i = 0; i < 300000; i++) print "line " int(rand() * 90000) }' >random
awk '!s[$0]++' random >wanted
for mode in "" "-j2" "-j5" "-n 1M -p 1e-9" "-n 1M -p 1e-9 -j3" "-p 1e-9 -M 2MB" "-n 1M" "-p 1e-9" "-p 1e-9 -j2" "--keyed" "--line-buffered"; do
  rm -f t; : >got
  for piece in 1 2 3; do
    # shellcheck disable=SC2086
    split -n "l/$piece/3" random | "$seen" uniq -q --state t $mode >>got || wrong "mode '$mode', piece $piece"
  done
  expect; cmp -s got wanted || wrong "mode '$mode' in three pieces prints other lines than awk"
done

# ---- Filters ----------------------------------------------------------------

run "$seen" uniq --state f -n 10000 -p 1% first; expect_err "of 10,000 distinct lines expect to lose"
run "$seen" uniq --state f first; expect_out ''; expect_silent
for same in "-n 10000 -p 1%" "-n 10000" "-p 1%"; do
  # shellcheck disable=SC2086
  run "$seen" uniq --state f $same first; expect_code 0; expect_out ''
done
run "$seen" uniq --state f -n 20000 -p 1% first; expect_failure "f: was made for 10,000 keys, -n says 20,000"
run "$seen" uniq --state f -p 1e-6 first; expect_failure "f: was made for a rate of"
run "$seen" uniq --state f -M 1GB -p 1% first; expect_failure "-M says 1 GB"
run "$seen" uniq --state f --keyed first; expect_failure "f: is not keyed"
run "$seen" uniq --state s -n 1000 first; expect_failure "s: is a set of fingerprints; -p, -n and -M ask for a Bloom filter"
# -p alone: a filter that grows.
run "$seen" uniq --state g -p 1e-6 first; expect_err "filter that grows"; run "$seen" uniq -p 1e-6 --state g second
expect; cmp -s .out fresh || wrong "a state that grows"
run "$seen" uniq --state g -p 1e-3 first; expect_failure "g: was made for a rate of"
seq 1 60000 >many
run "$seen" uniq -c --state f many; expect_err "10,000 were planned: the rate has risen to"
run "$seen" uniq --state m -M 1MB -p 1e-6 -q first; expect_code 0
run "$seen" uniq --state m -M 1MB -p 1e-6 -q first; expect_code 0; expect_out ''
"$seen" build -q --kind cuckoo -n 5000 -p 1e-6 -o c first; run "$seen" uniq -c --state c second; expect_out 500
run "$seen" uniq --state c second; expect; cmp -s .out fresh || wrong "a cuckoo filter as state"
"$seen" build -q --kind bitmap --bits 2000 -o b first; run "$seen" uniq -c --state b second; expect_out 500
run "$seen" uniq --state b second; expect; cmp -s .out fresh || wrong "a bitmap as state"
echo 2000 >beyond; run "$seen" uniq -c --state b beyond; expect_failure "beyond:1: 2000: is not below the bound"
run "$seen" uniq --state b beyond; expect_failure "beyond:1: 2000: is not below the bound"
"$seen" build -q --kind ribbon -o u first
run "$seen" uniq --state u second; expect_failure "u: is of kind ribbon, which takes no new keys"

# ---- Secrets ----------------------------------------------------------------

run "$seen" uniq -q --state apart --secret-file key first; expect_code 0; expect_file key
run "$seen" uniq --state apart first; expect_failure "apart: its secret is kept apart: add --secret-file"
run "$seen" uniq --state apart --secret-file key second; expect; cmp -s .out fresh || wrong "with its secret"
run "$seen" uniq --secret-file key first; expect_failure "--secret-file requires --state"

# ---- Killed on the way ------------------------------------------------------

mkfifo slow
for signal in TERM HUP KILL; do
  for threads in 1 3; do
    rm -f k
    begin out
    "$seen" uniq -q -j $threads --state k <slow >out &
    pid=$!
    exec 3>slow
    cat first >&3
    all_out() { cmp -s out first; }
    wait_for all_out
    kill -$signal $pid; wait $pid 2>/dev/null; code=$?
    exec 3>&-
    expect; [ $code -eq $((128 + $(kill -l $signal))) ] || wrong "the end by $signal"
    run "$seen" verify k; expect_code 0
    run "$seen" uniq --state k second
    expect; cmp -s .out fresh || wrong "after SIG$signal, -j $threads"
    if [ $signal = KILL ]; then
      expect_err "k: was not closed last time: 1,000 changes recovered from its journal"
    else
      expect_silent
    fi
  done
done

# Errors end it properly: what was printed is remembered, and nothing else is.
printf 'aa\nbb\nxx\ncc\n' >bad
for threads in 1 3; do
  rm -f h
  run "$seen" uniq -q -j $threads --hex --state h bad; expect_code 2; expect_out $'aa\nbb'; expect_err "bad:3: xx"
  run "$seen" info --json h; expect_json items 2; expect_json journal false
done
run bash -c "'$seen' uniq --state full first >/dev/full"; expect_code 2; expect_err "No space left"
run "$seen" verify full; expect_code 0

# ---- One at a time, and other mistakes --------------------------------------

begin out
"$seen" uniq -q --state s <slow >out &
exec 3>slow
echo new >&3
wait_for test -s out
run "$seen" uniq --wait 0 --state s first; expect_failure "s: another program is changing it"
run "$seen" add --wait 0 s first; expect_failure "s: another program is changing it"
echo new >one; run "$seen" check -c s one; expect_out 1
run "$seen" uniq -c --state s one first; expect_out 0; expect_silent # a reader does not wait
exec 3>&-; wait
run "$seen" uniq --state - first; expect_code 2
run "$seen" uniq --state first second; expect_failure "first: not a filter of seen: expected its 8 magic bytes"
run "$seen" uniq --state no/such/place first; expect_code 2; expect_err "no/such/place"
run "$seen" uniq --state none nowhere; expect_failure "nowhere: No such file"
expect_no_file none
run "$seen" uniq --state none --hex --u64 first; expect_failure "exclude each other"
expect_no_file none
cp s hurt; flip hurt 3000
run "$seen" uniq --state hurt first; expect_code 2; expect_err "hurt:"
ln -s s link; run "$seen" uniq --state link first; expect_out ''; run "$seen" uniq -c --state link first; expect_out 0; expect; [ -L link ] || wrong "the link is gone"

finish
