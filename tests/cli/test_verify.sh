#!/usr/bin/env bash
# test_verify.sh - seen verify: every byte that is damaged is found.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

seq 1 100000 >keys
for kind in bloom blocked cuckoo ribbon scalable set bitmap sorted; do
  "$seen" build -q --kind $kind -o $kind keys
done
run "$seen" verify bloom blocked; expect_code 0; expect_out $'bloom: good\nblocked: good'; expect_silent
run "$seen" verify -q bloom blocked cuckoo ribbon set bitmap; expect_code 0; expect_out ''
run "$seen" verify --json blocked; expect_json good true; expect_json journal false

# A flipped byte anywhere, of any kind.
for kind in bloom blocked cuckoo ribbon scalable set bitmap sorted; do
  size=$(stat -c %s $kind)
  for at in 1030 $((size / 3)) $((size / 2)) $((size - 1)); do
    cp $kind hurt; flip hurt "$at"
    run "$seen" verify hurt; expect_code 2; expect; [[ $out == 'hurt: BAD: '* ]] || wrong "byte $at of $kind"
  done
  head -c $((size - 1)) $kind >hurt; run "$seen" verify hurt; expect_code 2
  cp $kind hurt; echo >>hurt; run "$seen" verify hurt; expect_code 2
done
size=$(stat -c %s blocked)
cp blocked hurt; flip hurt $((size - 1))
run "$seen" verify hurt; expect_out "hurt: BAD: page 3 of 3 (bytes $((1088 + 2 * 65536)) to $((size - 1))) does not match its checksum: replace the file by a copy, or build it again"
run "$seen" verify blocked hurt bloom; expect_code 2
expect; [ "$(wc -l <.out)" -eq 3 ] || wrong "a verdict for each"
run "$seen" verify -q blocked hurt bloom; expect_code 2; expect; [ "$(wc -l <.out)" -eq 1 ] || wrong "-q"
run "$seen" verify --json blocked hurt; expect_code 2; expect_json good false; expect_json problem '"page 3'

# Nor does it become good by being added to or merged: that would hide it.
run bash -c "seq 100000 100200 | '$seen' add -q hurt"; expect_failure "hurt: page 3 of 3"
run bash -c "seq 100000 100200 | '$seen' add -q --no-verify hurt"; expect_code 2; expect_err "the file is damaged where this key belongs"
run "$seen" merge -o both hurt blocked; expect_failure "hurt: page 3 of 3"; expect_no_file both
run "$seen" merge -o both blocked hurt; expect_failure "hurt: page 3 of 3"; expect_no_file both
run "$seen" verify hurt; expect_code 2; expect; [[ $out == "hurt: BAD: page 3 of 3"* ]] || wrong "the damage is hidden"

# From stdin; without the secret; what is no filter.
run bash -c "'$seen' verify - <blocked"; expect_code 0; expect_out "stdin: good"
run bash -c "'$seen' verify - <hurt"; expect_code 2; expect; [[ $out == 'stdin: BAD: '* ]] || wrong "stdin"
"$seen" build -q --secret-file key -o apart keys; run "$seen" verify apart; expect_code 0
run "$seen" verify nowhere; expect_code 2; expect_out "nowhere: BAD: no such file"
run "$seen" verify keys; expect_code 2; expect_out "keys: BAD: not a filter of seen: expected its 8 magic bytes at offset 0"
run "$seen" verify .; expect_code 2; expect_out ".: BAD: is not a regular file: expected a filter file"
: >hollow; run "$seen" verify hollow; expect_code 2
run "$seen" verify; expect_failure "FILE is missing"
run bash -c "'$seen' verify blocked >/dev/full"; expect_code 2; expect_err "No space left"

# ---- With a journal ---------------------------------------------------------

mkfifo slow
"$seen" add -q --batch 100 blocked slow &
pid=$!
exec 3>slow
seq 200001 201000 >&3; seq 201000 201000 >last
wait_for "$seen" check -q blocked last
run "$seen" verify blocked; expect_code 0; expect_out "blocked: good, with a journal of 1,000 changes"
kill -KILL $pid; wait $pid 2>/dev/null; exec 3>&-
run "$seen" verify --json blocked; expect_json journal true; expect_json journal_keys 1000
# Damage in the middle of the journal is no torn tail.
journal=$(echo blocked.journal-*)
flip "$journal" 300
run "$seen" verify blocked; expect_code 2; expect; [[ $out == 'blocked: BAD: journal'* ]] || wrong "a damaged journal"
run "$seen" check blocked last; expect_code 2
run "$seen" add blocked last; expect_code 2
flip "$journal" 300
run "$seen" add blocked last; expect_code 0; expect_err "1,000 changes recovered"
run "$seen" verify blocked; expect_out "blocked: good"
run "$seen" verify --help; expect_code 0

finish
