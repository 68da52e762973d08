#!/usr/bin/env bash
# test_info.sh - seen info: what a filter is, and how it is doing.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

seq 1 1000 >keys
expect_line() { expect; grep -qxE "  $1" .out || wrong "expected a line: $1"; }

"$seen" build -q -p 1% -o blocked keys
run "$seen" info blocked; expect_code 0; expect_silent
expect_line 'kind      blocked'
expect_line 'keys      about [0-9,]+; planned for 1,000 at a rate of 0.9[0-9]+%'
expect_line 'rate now  0.[0-9]+%'
expect_line 'fill      [0-9.]+% of 10,240 bits'
expect_line 'hashes    8 in 1 cache line; xxh3-64'
expect_line 'size      [0-9.]+ kB in the file, 1.[0-9]+ kB in memory'
expect_line 'journal   none: closed properly'
run "$seen" info --json blocked; expect_silent
for pair in 'file "blocked"' 'kind "blocked"' 'capacity 1000' 'bits 10240' 'hashes 8' 'lines 1' 'width 0' \
  'hash "xxh3-64"' 'keyed false' 'secret "none"' 'journal false' "file_bytes $(stat -c %s blocked)"; do
  expect_json "${pair%% *}" "${pair#* }"
done
"$seen" build -q --kind cuckoo -o cuckoo keys
run "$seen" info cuckoo; expect_line 'hashes    4 in 2 cache lines, fingerprints of 12 bits; xxh3-64'
run "$seen" info --json cuckoo; expect_json width 12
"$seen" build -q --kind set -o set keys
run "$seen" info set; expect_line 'keys      1,000, and as many as come, at a rate of .*'
"$seen" build -q --kind scalable -o scalable keys
run "$seen" info scalable; expect_line 'keys      about [0-9,]+, and as many as come, at a rate of 0.1%'
"$seen" build -q --kind bitmap -o bitmap keys
run "$seen" info bitmap; expect_line 'keys      1,000 of the integers below 1,001'; expect_line 'rate now  0'
"$seen" build -q --kind ribbon -o ribbon keys; "$seen" build -q --kind bloom -o bloom keys
run "$seen" info blocked cuckoo set bitmap ribbon bloom; expect_code 0
expect; [ "$(grep -c '^[a-z]' .out)" -eq 6 ] || wrong "six filters"
run "$seen" info --json blocked set; expect; [ "$(grep -c '"file"' .out)" -eq 2 ] || wrong "two filters as JSON"

# ---- Secrets ----------------------------------------------------------------

"$seen" build -q --keyed -o keyed keys
run "$seen" info keyed; expect_line 'hashes    8 in 1 cache line; siphash-1-3-128, secret in the file'
"$seen" build -q --secret-file key -o apart keys
run "$seen" info apart; expect_code 0
expect_line 'kind      blocked'
expect_line 'rate now  unknown without its secret: add --secret-file'
expect_line 'hashes    8 in 1 cache line; siphash-1-3-128, secret apart'
run "$seen" info --json apart; expect_json secret '"apart"'; expect_json fpp_now null; expect_json bits_set null
run "$seen" info --secret-file key apart; expect_line 'rate now  0.[0-9]+%'
echo 00112233445566778899aabbccddeeff >other
run "$seen" info --secret-file other apart; expect_failure "the secret in other is another one"
expect; [ "$("$seen" info - <apart | grep -c 'unknown without its secret')" -eq 1 ] || wrong "apart, from stdin"

# ---- Overfull, from stdin, with a journal -----------------------------------

"$seen" build -q -n 100 -p 1% -o full keys
run "$seen" info --json full; expect; [ "$(sed -n 's/.*"fpp_now": \([0-9.]*\),/\1/p' .out | cut -c 1-3)" != 0.0 ] || wrong "the rate of an overfull filter"
run bash -c "'$seen' info - <blocked"; expect_line 'kind      blocked'; expect; [[ $out == stdin* ]] || wrong "the name of stdin"
mkfifo slow
"$seen" add -q blocked slow &
pid=$!
exec 3>slow
echo new >&3; echo new >one
wait_for "$seen" check -q blocked one
run "$seen" info blocked; expect_line 'journal   1 change: a writer is at work, or died; the next one takes over'
run "$seen" info --json blocked; expect_json journal true; expect_json journal_keys 1
kill -KILL $pid; wait $pid 2>/dev/null; exec 3>&-
run "$seen" info blocked; expect_line 'journal   1 change: a writer is at work, or died; the next one takes over'

# ---- Mistakes ---------------------------------------------------------------

run "$seen" info; expect_failure "TARGET is missing"
run "$seen" info blocked nowhere; expect_failure "nowhere: no such file"
run "$seen" info keys; expect_failure "keys:"
run "$seen" info .; expect_failure ".: is a directory without a store in it"
run "$seen" info redis://host/x; expect_failure "is not the number of a database"
run bash -c "'$seen' info blocked >/dev/full"; expect_code 2; expect_err "No space left"
run "$seen" info --help; expect_code 0

# ---- Options that would say nothing ------------------------------------------

"$seen" build -q --window 1h -n 10 -o window keys
"$seen" mark -q store alice a
for option in '--at 1000' --tail '--policy ttl=1d'; do
  # shellcheck disable=SC2086 # words
  run "$seen" info window $option; expect_failure "window: is a filter; ${option%% *} is for stores"
  # shellcheck disable=SC2086
  run "$seen" info store window $option; expect_code 2
done
for option in '--dialect dcso' '--secret-file key' '-n 5' '--key-type i32'; do
  # shellcheck disable=SC2086
  run "$seen" info store $option; expect_failure "store: is a store: leave out the options of filters"
done
run "$seen" info window --user alice; expect_failure "--user: expected one STORE: a directory, redis://... or mem:"

finish
