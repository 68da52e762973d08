#!/usr/bin/env bash
# test_add.sh - seen add: lines into a filter file, durably.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

seq 1 1000 >keys
seq 501 1500 >later

# ---- Created when missing, continued otherwise ------------------------------

run "$seen" add f keys; expect_failure "f: no such file; add -n ITEMS -p RATE to make it"
expect_no_file f
run "$seen" add f -n 10000 -p 1% keys
expect_code 0; expect_out ''; expect_err "f: created; 1,000 lines, 1,000 of them new; about 1,000 keys in all"
run "$seen" add f later; expect_err "f: 1,000 lines, 500 of them new; about 1,500 keys in all"
run "$seen" add f -n 10000 -p 1% later; expect_err "f: 1,000 lines, 0 of them new"
run "$seen" check -c f keys later; expect_out 2000
run "$seen" verify f; expect_code 0
expect; [ -z "$(find . -name '*journal*')" ] || wrong "a journal after closing"
input=later; run "$seen" add f; expect_code 0; run "$seen" add f -; expect_code 0; unset input
run "$seen" add f /dev/null; expect_code 0; expect_err "0 lines, 0 of them new"
run "$seen" add -q f keys; expect_code 0; expect_silent
run "$seen" add --json f keys; expect_silent; expect_json lines 1000; expect_json new 0; expect_json created false
run "$seen" add --json -n 100 g keys; expect_json created true; expect_json capacity 100
run "$seen" add -n 100 h keys; expect_err "h: was planned for 100 keys: the rate has risen to"
# A few more keys than planned are no matter.
seq 1 1000 >thousand; seq 1001 1011 >rest; "$seen" build -q -o just thousand
run "$seen" add just rest; expect_err "just: 11 lines, 11 of them new"; expect; [[ $err != *risen* ]] || wrong "the rate is what was wished for"

# What is asked for must be what is there.
run "$seen" add f -n 20000 keys; expect_failure "f: was made for 10,000 keys, -n says 20,000"
run "$seen" add f -p 2% keys; expect_failure "f: was made for a rate of"
run "$seen" add f --kind bloom keys; expect_failure "f: is of kind blocked, --kind says bloom"
run "$seen" add f --bits 4096 keys; expect_failure "--bits says 4,096"
run "$seen" add f --hashes 4 keys; expect_failure "f: has 8 hashes, --hashes says 4"
run "$seen" add f --keyed keys; expect_failure "f: is not keyed"
for same in "-n 10000" "-p 1%" "--kind blocked" "--hashes 8"; do
  # shellcheck disable=SC2086
  run "$seen" add -q f $same keys; expect_code 0
done

# ---- Every kind -------------------------------------------------------------

for kind in bloom blocked cuckoo scalable set bitmap; do
  case $kind in
    bitmap) how='--bits 2000' ;;
    set) how='' ;;
    *) how='-n 5000' ;;
  esac
  # shellcheck disable=SC2086
  run "$seen" add -q $kind --kind $kind $how keys; expect_code 0
  run "$seen" add -q $kind later; expect_code 0
  run "$seen" check -qv $kind keys later; expect_code 1
  run "$seen" verify $kind; expect_code 0
  # A filter that came through a pipe is a file like any other.
  "$seen" build -q --kind $kind ${how:+$how} -o - keys >"$kind.piped"
  run "$seen" add -q "$kind.piped" later; expect_code 0
  run "$seen" check -qv "$kind.piped" keys later; expect_code 1
done
run "$seen" add bitmap --kind bitmap; expect_code 0
echo 2000 >beyond
run "$seen" add bitmap beyond; expect_failure "beyond:1: 2000: is not below the bound of this bitmap"
run "$seen" add none --kind bitmap keys; expect_failure "--bits: expected at least 1, the bound"
expect_no_file none
"$seen" build -q --kind ribbon -o ribbon keys; cp ribbon before
run "$seen" add ribbon later; expect_failure "ribbon: is of kind ribbon, which takes no new keys"
expect; cmp -s ribbon before || wrong "a refused add changed the file"
run "$seen" add none --kind ribbon -n 100 keys; expect_failure "use seen build"
"$seen" build -q --kind sorted -o sorted keys
run "$seen" add sorted later; expect_failure "sorted: is of kind sorted, which takes no new keys"
run "$seen" add none --kind sorted -n 100 keys; expect_failure "--kind sorted: is made from all its keys at once"
# A cuckoo filter counts: two adds, two removals.
"$seen" add -q twice --kind cuckoo -n 5000 keys; run "$seen" add twice keys
expect_err "1,000 of them new"
run "$seen" remove -q twice keys; run "$seen" check -c twice keys; expect_out 1000
run "$seen" add small --kind cuckoo -n 100 keys; expect_code 2; expect_err "the filter is full"
run "$seen" verify small; expect_code 0

# ---- Batches ----------------------------------------------------------------

for batch in 1 7 1000 1e6; do
  run "$seen" add -q -n 10000 --batch $batch "b$batch" keys; expect_code 0
  run "$seen" check -qv "b$batch" keys; expect_code 1
done
run "$seen" add -q --ack --batch 300 f keys; expect_out $'300\n600\n900\n1000'
run "$seen" add --batch 0 f keys; expect_failure "--batch 0: expected at least 1"
run "$seen" add --ack --json -q f keys; expect_out 1000; expect_json lines 1000 err

# ---- A line that is no key --------------------------------------------------

printf '11\n22\nxx\n33\n' >bad
run "$seen" add -n 100 --hex half bad; expect_failure "bad:3: xx: expected hex digits only"
printf '11\n22\n33\n' >all
run "$seen" check --hex half all; expect_out $'11\n22'
run "$seen" verify half; expect_code 0; expect_out "half: good"
run "$seen" add -n 100 none nowhere; expect_failure "nowhere: No such file"
expect_no_file none
run "$seen" add -n 100 none --hex --u64 keys; expect_failure "exclude each other"
expect_no_file none

# ---- One writer, any number of readers --------------------------------------

mkfifo slow
# A signal is the end, but says what is kept.
for n in 1 3; do
  begin acks
  "$seen" add --ack stopped -n 100 -p 1% slow >acks 2>.err &
  pid=$!
  exec 3>slow
  seq 1 $n >&3
  wait_for grep -q "^$n\$" acks
  kill -TERM $pid; wait $pid; code=$? err=$(cat .err) last="add, and SIGTERM after $n"
  exec 3>&-
  expect_code 143; expect_err "seen add: stopped by a signal: $n line$([ $n = 1 ] && echo ' was' || echo 's were') added"
done
echo x >one; run "$seen" add once -n 10 -p 1% one; expect_err "once: created; 1 line, 1 of them new; about 1 key in all"
"$seen" add -q --batch 1 f slow &
exec 3>slow
echo first >&3
echo first >one
wait_for "$seen" check -q f one
run "$seen" check -c f one; expect_out 1
run "$seen" add --wait 0 f keys; expect_failure "f: another program is changing it"
run "$seen" remove --wait 0 f keys; expect_code 2
run "$seen" build -qo f keys; expect_failure "f: another program is changing it"
run "$seen" merge -qo f f f; expect_failure "f: another program is changing it"
run "$seen" info f; expect_code 0; expect; grep -q 'journal   1 change: a writer is at work' .out || wrong "info about a journal"
run "$seen" verify f; expect_out "f: good, with a journal of 1 change"
expect; [ "$("$seen" check -c - one <f 2>&1)" = "seen check: stdin: a writer had this file when it was copied, and part of it is in its journal: name the file instead" ] || wrong "a copy of half a file"
exec 3>&-
wait
run "$seen" verify f; expect_out "f: good"

# ---- Signals ----------------------------------------------------------------

# Where no journal can be, nothing is added, and the file is as good as before.
long=$(printf 'n%.0s' {1..240}) # with .journal-0000000000000001 too long a name
"$seen" build -q -o "$long" keys
run "$seen" add "$long" later; expect_failure "begin a journal beside it: File name too long"
run "$seen" info "$long"; expect; grep -q 'journal   none' .out || wrong "a mark was left"
expect; [ "$("$seen" check -c - keys <"$long")" = 1000 ] || wrong "the file cannot be piped any more"
rm "$long"

# A limit to the size of files is an error like a full disk.
"$seen" build -q -o limited keys; cp limited unlimited
run bash -c "ulimit -f 8; exec '$seen' add -q limited later"; expect_failure "limited: write to the journal: File too large"
run bash -c "ulimit -f 1; exec '$seen' build -qo limited later"; expect_failure "limited: write a file beside it: File too large"
run "$seen" check -qv limited keys; expect_code 1
run "$seen" add -q limited later; expect_code 0
run "$seen" verify limited; expect_out "limited: good"

# SIGTERM: what came is in the file, the journal is gone, and the signal is the
# end.
"$seen" add -q f slow &
pid=$!
exec 3>slow
echo second >&3; echo second >one
wait_for "$seen" check -q f one
kill -TERM $pid; wait $pid; code=$?
expect; [ $code -eq $((128 + 15)) ] || wrong "exit by SIGTERM"
exec 3>&-
run "$seen" verify f; expect_out "f: good"
run "$seen" check -c f one; expect_out 1
# SIGKILL: the journal is there, and the next writer takes it over.
"$seen" add -q f slow &
pid=$!
exec 3>slow
echo third >&3; echo third >one
wait_for "$seen" check -q f one
kill -KILL $pid; wait $pid 2>/dev/null
exec 3>&-
run "$seen" verify f; expect_code 0; expect_out "f: good, with a journal of 1 change"
run "$seen" check -c f one; expect_out 1
run "$seen" add f /dev/null; expect_err "f: was not closed last time: 1 change recovered from its journal (lines added or removed, repeats included)"
run "$seen" verify f; expect_out "f: good"
run "$seen" check -c f one; expect_out 1

# The bits of one that was killed are in the file, and it knows how many keys made
# them: whoever adds more than was planned learns that.
seq 1 900 >many; seq 901 1100 >beyond
begin acks
"$seen" add -q --ack -n 1000 -p 1% killed slow >acks &
pid=$!
exec 3>slow
cat many >&3
wait_for grep -qx 900 acks
kill -KILL $pid; wait $pid 2>/dev/null
exec 3>&-
run "$seen" info --json killed; expect_json items '\(8[789].\|900\)'
run "$seen" add killed beyond; expect_err "killed: was planned for 1,000 keys: the rate has risen to"

# ---- Secrets ----------------------------------------------------------------

run "$seen" add -q --keyed -n 2000 keyed keys; expect_code 0; run "$seen" add -q keyed later; expect_code 0
run "$seen" add -q --secret-file key -n 2000 apart keys; expect_code 0; expect_file key
run "$seen" add apart later; expect_failure "apart: its secret is kept apart"
run "$seen" add -q --secret-file key apart later; expect_code 0
run "$seen" check -qv --secret-file key apart keys later; expect_code 1
run "$seen" add --secret-file nokey apart later; expect_failure "nokey: No such file"
run "$seen" add --secret-file newkey -n 100 no/such/place keys; expect_code 2; expect_no_file newkey

# ---- No room ----------------------------------------------------------------

# A limit on the size of files is a small disk, with another word for it.
seq 1 300000 >many
run bash -c "trap '' XFSZ; ulimit -f 100; '$seen' add -n 1M room keys"; expect_failure "room: write a file beside it: File too large"
expect_no_file room
run bash -c "trap '' XFSZ; ulimit -f 100; '$seen' add --kind set room many"; expect_failure "room: write to the journal: File too large"
run "$seen" verify room; expect_code 0
run "$seen" add -q room many; expect_code 0; run "$seen" check -qv room many; expect_code 1
mkdir disk
if mount -t tmpfs -o size=2m none disk 2>/dev/null; then
  run "$seen" add -n 10M disk/f keys; expect_failure "disk/f: write a file beside it: No space left on device"
  expect_no_file disk/f
  run "$seen" add --kind set disk/f --ack --batch 1000 many; expect_code 2; expect_err "disk/f: write to the journal: No space left on device"
  head -n "$(tail -n 1 .out)" many >safe
  run "$seen" verify disk/f; expect_code 0
  run "$seen" check -qv disk/f safe; expect_code 1
  umount disk
fi

# ---- Names ------------------------------------------------------------------

mkdir place; "$seen" add -q -n 2000 place/real keys; ln -s place/real link
run "$seen" add -q link later; expect_code 0
expect; [ -L link ] || wrong "the link is gone"
run "$seen" check -qv place/real keys later; expect_code 1
# A link names the same file, journal and lock included.
"$seen" add -q link slow &
exec 3>slow
echo via >&3; echo via >one
wait_for "$seen" check -q place/real one
run "$seen" check -c place/real one; expect_out 1
run "$seen" add --wait 0 place/real keys; expect_failure "another program is changing it"
exec 3>&-; wait
run "$seen" add; expect_failure "TARGET is missing"
run "$seen" add - keys; expect_failure "stdin can only be read"
run "$seen" add "redis://127.0.0.1:1?key=k" keys; expect_failure "Connection refused"
run "$seen" add keys later; expect_failure "keys: not a filter of seen: expected its 8 magic bytes"
run "$seen" add . keys; expect_code 2
run "$seen" add -n 5 no/such/place keys; expect_code 2; expect_err "no/such/place"
if [ "$(id -u)" -ne 0 ]; then
  cp f fixed; chmod 444 fixed
  run "$seen" add fixed keys; expect_failure "fixed: open: Permission denied"
fi
run "$seen" add --help; expect_code 0

finish
