#!/usr/bin/env bash
# test_survey.sh - seen info about stores of users.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

expect_line() { expect; grep -qxE "  $1" .out || wrong "expected a line: $1"; }

# 100 users with 1 item, 30 with 5, one with 1000. The secret is fixed: under one in
# ten others, two of the 1000 have the same fingerprint.
echo 000102030405060708090a0b0c0d0e0f >secret
{
  seq -f $'one-%.0f\titem' 100
  for u in $(seq 30); do seq -f "five-$u	%.0f" 5; done
  seq -f $'all\t%.0f' 1000
} >events
"$seen" mark -q --secret-file secret feed <events
run "$seen" info feed; expect_code 0; expect_silent
expect_line 'policy    items=1000,generations=5,fpp=0.001,ttl=5d'
expect_line 'users     131'
expect_line 'items     1,250; 9.5 a user, 1,000 at most'
expect_line 'records   [0-9.]+ kB; [0-9]+ bytes a user, 1,[0-9]{3} at most; [0-9.]+ an item'
expect_line 'rate      [0-9.e-]+%? on average, 0.0[0-9]+% for the worst user'
expect_line 'disk      [0-9.]+ k?M?B, and 0 B in the journal'
expect_line ' +items of a user +users'
expect_line '         1 ..          1          100  #{40}'
expect_line '         2 ..          3            0'
expect_line '         4 ..          7           30  #{12}'
expect_line '       512 ..      1,023            1  #'
expect_line ' +bytes of a user +users'
run "$seen" info --json feed; expect_silent
for pair in 'store "feed"' 'users 131' 'aged 0' 'damaged 0' 'ttl_ms 432000000' 'total 1250' 'most 1000' 'journal_bytes 0'; do
  expect_json "${pair%% *}" "${pair#* }"
done
if command -v python3 >/dev/null; then
  cp .out survey.json
  run python3 -c "
import json, sys
s = json.load(open('survey.json'))['stores'][0]
for what in 'items', 'bytes':
    h = s[what]['histogram']
    assert sum(r['users'] for r in h) == s['users'] == 131, h
    assert sum(r['from'] * r['users'] for r in h) <= s[what]['total'] <= sum(r['to'] * r['users'] for r in h)
"; expect_code 0
fi
run "$seen" info lmdb:feed; expect_code 0; expect_line 'users     131'

# ---- One user ---------------------------------------------------------------

run "$seen" info feed --user all; expect_code 0; expect_silent
expect_line 'user      all'; expect_line 'items     1,000'; expect_line 'record    1,[0-9]{3} bytes'; expect_line 'rate now  0.0[0-9]+%'
expect_line '         1 +1000 +1[0-9]{3} +[0-9.]+ (ms|s|m) ago +[0-9.]+ (ms|s|m) ago'
run "$seen" info --json feed --user five-3; expect_json user '"five-3"'; expect_json items 5
run "$seen" info feed --user nobody; expect_code 0; expect_line 'items     0'; expect_line 'rate now  0'
run "$seen" info --json feed --user nobody; expect_code 0; expect_json items 0
run "$seen" info feed --user ''; expect_failure "USER is empty"
run "$seen" info feed --user "$(head -c 512 /dev/zero | tr '\0' u)"; expect_failure "USER has 512 bytes"
run "$seen" info feed feed --user all; expect_failure "--user: expected one STORE"
"$seen" build -q -n 10 -o filter /dev/null
run "$seen" info filter --user all; expect_failure "--user: expected one STORE"
run "$seen" info none --user all; expect_failure "--user: expected one STORE"

# Generations and ages: a generation a day, and what has aged out is gone.
day=86400000
for d in 0 1 2 3 4 5 6; do "$seen" mark -q aged u "item $d" --at $(((100 + d) * day)); done
run "$seen" info aged --user u --at $((106 * day)); expect_line ' +1 .* 0 ms ago +0 ms ago'
expect_line ' +2 .* ago +1.0 d ago'
run "$seen" info --json aged --user u --at $((111 * day)); expect_json items 1
run "$seen" info --json aged --user u --at $((112 * day)); expect_json items 0
run "$seen" info aged --at $((112 * day)); expect_line 'users     0; 1 whose items have all aged out: seen sweep'
run "$seen" info --json aged --at $((112 * day)); expect_json aged 1; expect_json users 0

# ---- Filters and stores -----------------------------------------------------

run "$seen" info feed filter aged; expect_code 0
expect; [ "$(grep -c '^[a-z]' .out)" -eq 3 ] || wrong "three of them"
run "$seen" info --json feed filter aged; expect_json filters '\['; expect_json stores '\['
expect; [ "$(grep -c '"store": ' .out)" -eq 2 ] || wrong "two stores"
"$seen" mark -q void </dev/null
run "$seen" info void; expect_code 0; expect_line 'users     0'; expect_line 'items     0; 0.0 a user, 0 at most'
run "$seen" info --json void; expect_code 0; expect_json users 0
run "$seen" info lmdb:none; expect_failure "lmdb:none: no such store"
run "$seen" info .; expect_failure ".: is a directory without a store in it"
mkdir dir; run "$seen" info dir; expect_failure "dir: is a directory without a store in it"
expect; [ -z "$(ls dir)" ] || wrong "info has left something"
run bash -c "'$seen' info feed >/dev/full"; expect_code 2; expect_err "No space left"

finish
