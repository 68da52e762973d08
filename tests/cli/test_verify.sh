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
run "$seen" verify .; expect_code 2; expect_out ".: BAD: no store of users is there: expected one, or a filter file"
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

# ---- Stores of users ----------------------------------------------------------

for u in ann-the-first the-damaged-one zoe-the-last; do "$seen" mark -q feed $u a b; done
run "$seen" verify feed bloom; expect_code 0; expect_out $'feed: good, 3 users\nbloom: good'; expect_silent
run "$seen" verify lmdb:feed/; expect_code 0; expect_out "lmdb:feed/: good, 3 users"
run "$seen" verify -q feed; expect_code 0; expect_out ''
run "$seen" verify --json feed; expect_json good true; expect_json users 3; expect_json damaged 0
cp -r feed hurt-store
for at in $(grep -obaF the-damaged-one hurt-store/data.mdb | cut -d: -f1); do
  printf '\0' | dd of=hurt-store/data.mdb bs=1 seek=$((at + 15)) conv=notrunc 2>/dev/null
done
run "$seen" verify feed hurt-store; expect_code 2
expect_out $'feed: good, 3 users\nhurt-store: BAD: 1 of 3 users damaged: user the-damaged-one: the bytes are damaged or of another format; seen forget removes the record'
run "$seen" verify --json hurt-store; expect_code 2; expect_json good false; expect_json damaged 1
head -c 3000 feed/data.mdb >short; mkdir cut-store; cp short cut-store/data.mdb
run "$seen" verify cut-store; expect_code 2; expect; [[ $out == 'cut-store: BAD: '* ]] || wrong "a store that was cut"
mkdir hollow-store; run "$seen" verify hollow-store; expect_code 2; expect_out "hollow-store: BAD: no store of users is there: expected one, or a filter file"
for url in redis://localhost/ redis+plain://localhost/?key=a redis+list://localhost/?prefix=a mem:; do
  run "$seen" verify $url; expect_failure "$url: is not on a disk of this machine: expected filter files, or stores in directories"
done
# With what a writer that died has left.
begin acks
"$seen" mark -q --ack --batch 1 left <slow >acks &
pid=$!
exec 3>slow
printf 'eve\tx\neve\ty\n' >&3
wait_for grep -qx 2 acks
run "$seen" verify left; expect_code 0; expect_out "left: good, 1 user, with a journal of 2 changes"
kill -KILL $pid; wait $pid 2>/dev/null; exec 3>&-
run "$seen" verify left; expect_code 0; expect_out "left: good, 1 user, with a journal of 2 changes"

finish
