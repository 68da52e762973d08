#!/usr/bin/env bash
# test_mark.sh - seen mark: what users have been shown, into a store.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

# fresh STORE USER ITEM...: how many of these are fresh for the user.
fresh() {
  local store=$1 user=$2
  shift 2
  printf '%s\n' "$@" | "$seen" fresh "$store" "$user" | wc -l
}
expect_fresh() { # COUNT STORE USER ITEM...
  local count=$1
  shift
  expect
  [ "$(fresh "$@")" -eq "$count" ] || wrong "expected $count fresh: $*"
}

# ---- Arguments --------------------------------------------------------------

run "$seen" mark feed alice a b c
expect_code 0; expect_out ''; expect_err "feed: created; 3 marks, 3 of them new"
expect; [ -d feed ] || wrong "a store is a directory"
expect_fresh 0 feed alice a b c; expect_fresh 3 feed bob a b c; expect_fresh 1 feed alice a b z
run "$seen" mark feed alice c d; expect_err "feed: 2 marks, 1 of them new"
run "$seen" mark -q feed alice e; expect_code 0; expect_silent; expect_out ''
run "$seen" mark --json feed alice e f; expect_silent
for pair in 'store "feed"' 'created false' 'marks 2' 'new 1' 'damaged 0'; do
  expect_json "${pair%% *}" "${pair#* }"
done
run "$seen" mark --ack -q feed alice g; expect_out 1
run "$seen" mark lmdb:feed alice h -q; expect_code 0; expect_fresh 0 feed alice h
run "$seen" mark mem: alice h; expect_code 0; expect_no_file mem:

# Items are bytes; an empty one is an item like others.
run "$seen" mark -q feed odd ''; expect_code 0
expect_fresh 0 feed odd ''; expect_fresh 1 feed odd ' '
run "$seen" mark -q feed odd $'tab\there' $'two\nlines' -- -q --json; expect_code 0
expect_fresh 0 feed odd $'tab\there' -q --json
run bash -c "printf 'two\nlines\0' | '$seen' fresh -0 feed odd"; expect_out ''
long=$(head -c 100000 /dev/zero | tr '\0' x)
run "$seen" mark -q feed odd "$long"; expect_code 0; expect_fresh 0 feed odd "$long"; expect_fresh 1 feed odd "${long}x"

# Users are 1 to 511 bytes, any bytes.
u511=$(head -c 511 /dev/zero | tr '\0' u)
for user in x "$u511" $'a\tb' $'a\nb' ' ' '-' 'ü' $'\xff\x01'; do
  run "$seen" mark -q feed -- "$user" i; expect_code 0
  expect; [ "$(echo i | "$seen" fresh feed -- "$user" | wc -l)" -eq 0 ] || wrong "the user was not marked"
done
run "$seen" mark feed "${u511}u" i; expect_failure "USER has 512 bytes: expected 1 to 511"
run "$seen" mark feed '' i; expect_failure "USER is empty: expected 1 to 511 bytes"

# ---- Key options ------------------------------------------------------------

run "$seen" mark -q --u64 feed num 1 256 18446744073709551615; expect_code 0
run bash -c "printf '%s\n' 1 2 256 | '$seen' fresh --u64 feed num"; expect_out 2
run bash -c "printf '%s\n' 0100000000000000 0001000000000000 | '$seen' fresh --hex feed num"; expect_out ''
expect_fresh 1 feed num 1
run "$seen" mark -q --hex feed hex 6162 -- -; expect_code 0
expect_fresh 0 feed hex ab ''; expect_fresh 1 feed hex AB
run "$seen" mark -q -i feed fold HeLLo; expect_code 0; expect_fresh 0 feed fold hello; expect_fresh 1 feed fold HeLLo
run "$seen" mark --u64 none u 5 x; expect_failure "x: expected a decimal number below 2^64"; expect_no_file none
run "$seen" mark --u64 none u 18446744073709551616; expect_code 2; expect_no_file none
run "$seen" mark --hex none u 123; expect_failure "123: expected an even number of hex digits"; expect_no_file none
run "$seen" mark --hex --u64 none u 12; expect_failure "exclude each other"; expect_no_file none

# ---- Events -----------------------------------------------------------------

for i in 1 2 3 4 5; do for u in ann bob cy; do printf '%s\titem %s of %s\n' $u $i $u; done; done >events
input=events; run "$seen" mark bulk; unset input
expect_code 0; expect_out ''; expect; [ "$err" = "seen mark: bulk: created; 15 marks" ] || wrong "the note"
expect_fresh 0 bulk ann "item 1 of ann" "item 5 of ann"; expect_fresh 1 bulk ann "item 1 of bob"
# The same marks, one by one, make the same answers.
while IFS=$'\t' read -r user item; do "$seen" mark -q single "$user" "$item"; done <events
seq -f 'item %.0f of ann' 0 9 >candidates
for u in ann bob cy; do
  run "$seen" fresh bulk $u candidates; bulk=$out
  run "$seen" fresh single $u candidates; expect_out "$bulk"
done
input=events
run "$seen" mark --json bulk; expect_json marks 15; expect_json new null
{ cat events; printf 'ann\tnew\nann\tnew\nbob\tnew\n'; } >later; input=later
run "$seen" mark --json --new bulk; expect_json marks 18; expect_json new 2
run "$seen" mark --new bulk; expect_err "bulk: 18 marks, 0 of them new"
unset input
gzip -k events; input=events.gz; run "$seen" mark -q zipped; expect_code 0; unset input
expect_fresh 0 zipped cy "item 3 of cy"
: >empty; input=empty; run "$seen" mark void; unset input; expect_code 0; expect_err "void: created; 0 marks"
printf 'u\tno end of line' >open; input=open; run "$seen" mark -q bulk; unset input; expect_fresh 0 bulk u "no end of line"
printf 'u\t\nv\ta\tb\n' >odd; input=odd; run "$seen" mark -q bulk; unset input
expect_fresh 0 bulk u ''; expect_fresh 0 bulk v $'a\tb'
printf 'u\tx\ny\0v\tz\0' >nul; input=nul; run "$seen" mark -q -0 bulk; unset input; expect_code 0; expect_fresh 0 bulk v z
printf 'u\t77\nu\t78\n' >num; input=num; run "$seen" mark -q --u64 bulk; unset input
run bash -c "printf '77\n78\n79\n' | '$seen' fresh --u64 bulk u"; expect_out 79

# Many events, more than a chunk and many batches of any size; a user's come
# apart and together.
awk 'BEGIN { srand(7); for (i = 0; i < 60000; i++) printf "user%d\titem%d\n", int(rand() * rand() * 500), i }' >many
input=many; run "$seen" mark --ack -q many1; expect_code 0; expect; [ "$(tail -n 1 .out)" = 60000 ] || wrong "the last acknowledgement"
run "$seen" mark --batch 1 -q --sync none many2; expect_code 0; unset input
sort -s -t$'\t' -k1,1 many >grouped
for store in many1 many2; do input=grouped; run "$seen" fresh $store; expect_code 0; expect_out ''; done; unset input
run bash -c "sed 's/item/other/' grouped | '$seen' fresh many1 | wc -l"; expect; [ "$out" -gt 59800 ] || wrong "too many withheld: $out"
run bash -c "sed 's/\titem/\tother/' grouped | '$seen' fresh --json many1 2>&1 >/dev/null"; expect_json candidates 60000; expect_json requests 500

# ---- Lines that are no events -----------------------------------------------

printf 'u\tone\nu\ttwo\nnothing\nu\tthree\n' >bad
input=bad; run "$seen" mark half; expect_failure "stdin:3: nothing: expected a user, a tab and an item; before that, 2 lines were marked"
expect_fresh 1 half u one two three
printf '\titem\n' >bad; run "$seen" mark half; expect_failure "stdin:1: ?item: expected a user of 1 to 511 bytes before the tab"
printf '%su\titem\n' "$u511" >bad; run "$seen" mark half; expect_failure "expected a user of 1 to 511 bytes"
printf '%s\titem\n' "$u511" >bad; run "$seen" mark -q half; expect_code 0; expect_fresh 0 half "$u511" item
printf '\n' >bad; run "$seen" mark half; expect_failure "stdin:1: : expected a user, a tab"
printf 'u\t1\nu\t1x\n' >bad; run "$seen" mark --u64 half; expect_failure "stdin:2: u?1x: expected a decimal number"
unset input

# What is an item, but perhaps should not be.
run bash -c "printf 'ann\ta\tx\nann\tb\n' | '$seen' mark tabs"; expect_code 0
expect_err "1 of 2 lines has a second tab, which is part of the item"
run bash -c "printf 'a\tx\na\nb\n' | '$seen' fresh tabs ann"; expect_out a
run "$seen" mark tabs ann bad; expect_code 0; expect_err "bad is taken for an item, though there is such a file"
run "$seen" mark tabs ann bad bad2; expect_code 0; expect_err "tabs: 2 marks"
run bash -c "echo c | '$seen' take made ann -n 1"; expect_code 0; expect_out c; expect_err "made: created"
run bash -c "echo d | '$seen' take made ann -n 1"; expect_code 0; expect_out d; expect_silent

# ---- Policies ---------------------------------------------------------------

run "$seen" mark p --policy items=500,generations=3,fpp=1%,ttl=36h u i; expect_code 0
run "$seen" info p; expect; grep -q 'policy    items=500,generations=3,fpp=0.01,ttl=36h' .out || wrong "the policy"
run "$seen" mark p u j --policy ttl=2d
expect_err "p: policy changed to items=500,generations=3,fpp=0.01,ttl=2d; it was items=500,generations=3,fpp=0.01,ttl=36h"
expect_fresh 0 p u i j
run "$seen" info p; expect; grep -q 'policy    items=500,generations=3,fpp=0.01,ttl=2d' .out || wrong "the new policy"
run "$seen" mark p u j --policy ttl=48h,items=500; expect_code 0; expect; [[ $err != *changed* ]] || wrong "the same policy"
run "$seen" mark p u k; expect; [[ $err != *changed* ]] || wrong "no policy"
run "$seen" mark q u j --policy generations=1; expect_code 0
run "$seen" info --json q; expect_json items 1000; expect_json generations 1; expect_json fpp 0.001; expect_json ttl_ms 432000000
refused() { # POLICY TEXT
  run "$seen" mark r u i --policy "$1"
  expect_failure "$2"
  expect_no_file r
}
refused '' "--policy : expected items=, generations=, fpp= or ttl="
refused 5d "--policy 5d: expected items=, generations=, fpp= or ttl="
refused items "--policy items: expected items=, generations=, fpp= or ttl="
refused items= "--policy items=: expected a count such as"
refused items=0 "--policy items=0: expected at least 1"
refused items=10,items=20 "--policy: items is given twice"
refused items=10, "--policy : expected items="
refused item=10 "--policy item=10: expected items="
refused Items=10 "--policy Items=10: expected items="
refused items=1e12 "--policy items=1e12: expected"
refused items=2M "items"
refused generations=65 "generations"
refused generations=2.5 "--policy generations=2.5: expected a whole number"
refused fpp=0 "--policy fpp=0: expected a rate"
refused fpp=1 "--policy fpp=1: expected a rate"
refused fpp=-1 "--policy fpp=-1: expected a rate"
refused fpp=1e-12 "fpp"
refused fpp=nan "--policy fpp=nan: expected a rate"
refused ttl=5 "--policy ttl=5: expected a time with its unit"
refused ttl=0s "--policy ttl=0s: expected at least 1ms"
refused ttl=5d,fpp "--policy fpp: expected items="

# ---- Time -------------------------------------------------------------------

day=86400000
run "$seen" mark -q aged u old --at $((100 * day)); expect_code 0
run "$seen" mark -q aged u new --at $((104 * day)); expect_code 0
run bash -c "printf 'old\nnew\n' | '$seen' fresh aged u --at $((105 * day))"; expect_out ''
run bash -c "printf 'old\nnew\n' | '$seen' fresh aged u --at $((106 * day))"; expect_out old
run bash -c "printf 'old\nnew\n' | '$seen' fresh aged u --at $((110 * day))"; expect_out $'old\nnew'
run bash -c "printf 'old\nnew\n' | '$seen' fresh aged u --at 1"; expect_out '' # a clock that went back
run "$seen" mark aged u x --at 0; expect_failure "--at 0: expected at least 1"

# ---- Secrets ----------------------------------------------------------------

run "$seen" mark -q s1 u i --secret-file key; expect_code 0; expect_file key
expect; [ "$(stat -c %a key)" = 600 ] || wrong "the mode of a secret"
run "$seen" mark -q s1 u j --secret-file key; expect_code 0
expect; [ "$(stat -c %a s1)" = 700 ] || wrong "the mode of a store"
run bash -c "mkdir -m 750 given; '$seen' mark -q given u i"; expect; [ "$(stat -c %a given)" = 750 ] || wrong "the mode of a directory that was there"
run "$seen" mark -q s2 u i --secret-file key; expect_code 0
run "$seen" mark -q s1 u k; expect_code 0
echo 00112233445566778899aabbccddeeff >other
run "$seen" mark s1 u k --secret-file other; expect_failure "s1: the secret in other is another one"
run "$seen" mark s1 u k --secret-file missing; expect_failure "missing: No such file"; expect_no_file missing
echo short >nokey
run "$seen" mark s3 u k --secret-file nokey; expect_failure "nokey: is not a secret"; expect_no_file s3

# ---- One writer -------------------------------------------------------------

mkfifo slow
"$seen" mark -q --ack feed <slow >acks &
pid=$!
exec 3>slow
printf 'busy\tone\n' >&3
wait_for test -s acks
run "$seen" mark --wait 0 feed u i; expect_failure "feed: another program"
run "$seen" take --wait 0 feed u -n 1; expect_failure "feed: another program"
run "$seen" forget --wait 0 feed u; expect_failure "feed: another program"
run "$seen" sweep --wait 0 feed; expect_failure "feed: another program"
run "$seen" mark --wait 0 feed u i --policy ttl=1d; expect_failure "feed: another program"
# Readers go on; with --tail they see what was acknowledged.
run bash -c "echo a | '$seen' fresh feed alice"; expect_code 0; expect_out ''
run bash -c "echo one | '$seen' fresh --tail feed busy"; expect_out ''
run bash -c "echo two | '$seen' fresh --tail feed busy"; expect_out two
# SIGTERM: what came is in the store, and the signal is the end.
printf 'busy\ttwo\n' >&3
wait_for bash -c "[ \"\$(tail -n 1 acks)\" = 2 ]"
kill -TERM $pid; wait $pid; code=$?
expect; [ $code -eq $((128 + 15)) ] || wrong "exit by SIGTERM"
exec 3>&-
expect_fresh 0 feed busy one two
run "$seen" mark feed busy three; expect; [[ $err != *"not closed"* ]] || wrong "closed properly"
# SIGKILL: the next writer takes the journal over, and says so.
begin acks
"$seen" mark -q --ack feed <slow >acks &
pid=$!
exec 3>slow
printf 'busy\tfour\n' >&3
wait_for test -s acks
kill -KILL $pid; wait $pid 2>/dev/null
exec 3>&-
run bash -c "echo four | '$seen' fresh --tail feed busy"; expect_out ''
cp -r feed crashed; run "$seen" mark --json crashed busy five; expect_json recovered_batches 1
run "$seen" mark feed busy five; expect_code 0; expect_err "feed: was not closed last time: 1 batch recovered from its journal"
expect_fresh 0 feed busy four five

# ---- Mistakes ---------------------------------------------------------------

run "$seen" mark; expect_failure "STORE is missing"
run "$seen" mark ''; expect_failure "STORE is empty"
run "$seen" mark feed alice; expect_failure "ITEM is missing"
run "$seen" mark redis://host/x u i; expect_failure "is not the number of a database"
run "$seen" mark redis+sets://host/x u i; expect_failure "no store on a server has such a URL: expected redis:// or redis+list://"
run "$seen" mark lmdb: u i; expect_failure "STORE is empty"
run "$seen" mark events u i; expect_code 2; expect_err "events: "
run "$seen" mark no/such/place u i; expect_code 2; expect_err "no/such/place: "
run "$seen" mark feed u i --sync sometimes; expect_failure "--sync sometimes: expected batch or none"
run "$seen" mark feed u i --batch 0; expect_failure "--batch 0: expected at least 1"
run "$seen" mark feed u i --nonsense; expect_failure "unknown option --nonsense"
run bash -c "'$seen' mark --json feed u i >/dev/full"; expect_code 2; expect_err "No space left"
mkdir notastore; touch notastore/file
run "$seen" mark notastore u i; expect; [ "$(ls notastore | wc -l)" -ge 1 ] || wrong "a file is gone"
run "$seen" mark --help; expect_code 0
for word in --policy --sync --secret-file --u64 --at --ack; do expect; grep -q -- "$word" .out || wrong "help says nothing of $word"; done

finish
