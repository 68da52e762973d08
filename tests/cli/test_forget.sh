#!/usr/bin/env bash
# test_forget.sh - seen forget, sweep and backup: less, and a copy of it all.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

printf '%s\n' a b c d >items

# ---- Forget -----------------------------------------------------------------

"$seen" mark -q feed alice a b c; "$seen" mark -q feed bob a b c
run "$seen" forget feed alice b; expect_code 0; expect_out ''; expect_err "feed: 1 item of alice forgotten"
run "$seen" forget feed alice b; expect_code 0; expect_err "nothing forgotten: alice has been shown none of these"
run "$seen" forget --json feed alice b zz; expect_code 0; expect_json items 0; expect_json known true
run "$seen" fresh feed alice items; expect_out $'b\nd'
"$seen" mark -q feed alice b
run "$seen" forget feed alice b zz; expect_code 0; expect_err "1 of 2 items of alice forgotten, the others were not known"
run "$seen" forget feed alice a c -q; expect_code 0; expect_silent
run "$seen" fresh feed alice items; expect_out "$(cat items)"
run "$seen" fresh feed bob items; expect_out d
run "$seen" forget feed bob; expect_code 0; expect_err "feed: bob forgotten"
run "$seen" fresh feed bob items; expect_out "$(cat items)"
run "$seen" forget feed bob; expect_code 0; expect_err "feed: nothing is known about bob"
run "$seen" forget feed bob a; expect_code 0; expect_err "feed: nothing is known about bob"
"$seen" mark -q --u64 feed num 1 2 3
run "$seen" forget --u64 feed num 2; expect_code 0
run bash -c "seq 3 | '$seen' fresh --u64 feed num"; expect_out 2
run "$seen" forget --json feed num; expect_silent; expect_json store '"feed"'; expect_json user '"num"'; expect_json known true; expect_json items 0
run "$seen" forget --json feed num x; expect_json known false
"$seen" mark -q feed odd ''; run "$seen" forget -q feed odd ''; expect_code 0
run bash -c "echo | '$seen' fresh feed odd | wc -l"; expect_out 1
run "$seen" forget; expect_failure "STORE is missing"
run "$seen" forget feed; expect_failure "USER is missing"
run "$seen" forget feed ''; expect_failure "USER is empty"
run "$seen" forget none alice; expect_failure "none: no such store"; expect_no_file none
run "$seen" forget --u64 feed alice x; expect_failure "x: expected a decimal number"
run "$seen" forget redis://h/x u; expect_failure "is not the number of a database"

# ---- A damaged record is the trouble of its user alone ------------------------

for u in ann-the-first the-damaged-one zoe-the-last; do "$seen" mark -q bad $u a; done
printf '%s\tq\n' ann-the-first the-damaged-one zoe-the-last >lines
# The record lies behind the name; a version of 0 there never was.
for at in $(grep -obaF the-damaged-one bad/data.mdb | cut -d: -f1); do
  printf '\0' | dd of=bad/data.mdb bs=1 seek=$((at + 15)) conv=notrunc 2>/dev/null
done
said='bad: user the-damaged-one: the bytes are damaged or of another format; seen forget removes the record'
others=$(printf '%s\tq\n' ann-the-first zoe-the-last)
run "$seen" fresh bad the-damaged-one items; expect_failure "$said"
run "$seen" take bad the-damaged-one -n 1 items; expect_failure "$said"
run "$seen" mark -q bad the-damaged-one x; expect_failure "$said"
run "$seen" mark --json bad the-damaged-one x; expect_code 2; expect_json marks 0; expect_json damaged 1
run "$seen" forget bad the-damaged-one a; expect_failure "$said"
run "$seen" info bad --user the-damaged-one; expect_failure "the bytes are damaged"
run "$seen" info bad; expect_code 2; expect_err "$said"; expect; grep -qx '  users     2; 1 damaged' .out || wrong "info"
input=lines
run "$seen" fresh bad; expect_code 2; expect_out "$others"; expect_err "$said"
run "$seen" take --json bad -n 1; expect_code 2; expect_out "$others"; expect_json damaged 1 err
run "$seen" mark --new bad; expect_code 2; expect_err "$said"; expect_err "bad: 2 marks, 0 of them new"
# Nobody knows what the other store had for him: nothing is printed.
run "$seen" fresh feed --also bad; expect_code 2; expect_out ''; expect_err "$said"
unset input
run "$seen" forget bad the-damaged-one; expect_code 0; expect_err "bad: the-damaged-one forgotten"
input=lines; run "$seen" take bad -n 1; expect_code 0; expect_out $'the-damaged-one\tq'; unset input

# ---- Sweep ------------------------------------------------------------------

day=86400000
"$seen" mark -q old ann a --at $((100 * day)); "$seen" mark -q old bob a --at $((103 * day))
run "$seen" sweep old --at $((104 * day)); expect_code 0; expect_out ''; expect_err "old: 0 users removed, 2 left"
run "$seen" sweep old --at $((106 * day)); expect_err "old: 1 user removed, 1 left"
run "$seen" sweep --json old --at $((120 * day)); expect_silent; expect_json removed 1; expect_json users 0
run "$seen" sweep -q old; expect_code 0; expect_silent
# A clock that is wrong removes nobody: not that of one user's marks ...
seq -f 'user %.0f' 1 3000 | sed 's/$/\tpost/' >many
now=$(date +%s)000
input=many run "$seen" mark -q crowd; expect_code 0
for i in 1 2 3 4 5; do
  run "$seen" mark crowd late "x$i" --at $((now + 6 * day)); expect_code 0; expect_err "--at is 6.0 d ahead of this machine's clock: what these users were shown earlier ages by it, too"
done
run "$seen" mark -q crowd late y --at $((now + 600 * day)); expect_silent
run "$seen" info --json crowd; expect_json users 3001
run bash -c "'$seen' fresh crowd <many"; expect_out ''
run bash -c "echo z | '$seen' take crowd late -n 1 --at $((now + 6 * day))"; expect_out z; expect_err "--at is 6.0 d ahead"
# ... nor a time to come, unless it is meant.
run "$seen" sweep crowd --at $((now + 8 * day)); expect_failure "--at is 8.0 d ahead of this machine's clock"
run "$seen" sweep crowd; expect_err "crowd: 0 users removed, 3,001 left"
run "$seen" sweep crowd --force --at $((now + 8 * day)); expect_err "crowd: 3,000 users removed, 1 left"
run "$seen" sweep none; expect_failure "none: no such store"; expect_no_file none
run "$seen" sweep; expect_failure "STORE is missing"
run "$seen" sweep old feed; expect_failure "feed: expected one STORE"

# ---- Backup -----------------------------------------------------------------

"$seen" mark -q feed alice a b
run "$seen" backup feed copy; expect_code 0; expect_out ''; expect_err "feed: copied to copy"
expect; [ "$(stat -c %a copy)" = 700 ] || wrong "the mode of a backup"
run "$seen" fresh copy alice items; expect_out $'c\nd'
"$seen" mark -q feed alice c
run "$seen" fresh copy alice items; expect_out $'c\nd'
run "$seen" take -q copy alice -n 1 items; expect_out c
run "$seen" fresh feed alice items; expect_out d
run "$seen" backup feed copy; expect_failure "seen backup: copy: is there already"
run "$seen" fresh copy alice items; expect_out d
run "$seen" backup -q feed copy2; expect_code 0; expect_silent
run "$seen" backup --json feed copy3; expect_json backup '"copy3"'
run "$seen" backup feed; expect_failure "DIR is missing"
run "$seen" backup feed a b; expect_failure "b: expected one STORE and one DIR"
run "$seen" backup feed no/such/place; expect_code 2; expect_err "no/such/place: "
run "$seen" backup none copy4; expect_failure "none: no such store"; expect_no_file copy4
run "$seen" backup mem: copy4; expect_code 2; expect_no_file copy4

# While a writer is at work: everything it has acknowledged is in the copy.
mkfifo slow
"$seen" mark -q --ack feed <slow >acks &
exec 3>slow
printf 'alice\tlate\n' >&3
wait_for test -s acks
run "$seen" backup feed online; expect_code 0
run bash -c "printf 'late\na\n' | '$seen' fresh --tail online alice"; expect_out ''
run "$seen" mark -q online alice more; expect_code 0
run bash -c "printf 'late\na\nmore\n' | '$seen' fresh online alice"; expect_out ''
exec 3>&-
wait

# A copy takes the store's place while a writer is at work. The writer leaves the copy
# alone, and says so; both are whole, and each holds what it held or was told.
printf '%s\n' a late last new >items
for acks in 1 2; do
  mkfifo swapping; begin acks said
  "$seen" mark -q swap alice a
  "$seen" mark -q --ack --batch 1 swap <swapping >acks 2>said & pid=$!
  exec 3>swapping
  printf 'alice\tlate\n' >&3
  wait_for test -s acks
  "$seen" backup -q swap swap-copy
  mv swap broken; mv swap-copy swap
  before=$(ls swap; sha256sum swap/seen.journal-*)
  [ $acks = 1 ] || printf 'alice\tlast\n' >&3
  wait_for bash -c "[ \$(wc -l <acks) = $acks ]"
  exec 3>&-
  wait $pid; code=$?; err=$(cat said); out=''; last="mark into a store that was replaced"
  expect_code 2; expect_err "the store was moved or replaced while it was open"
  expect; [ "$(ls swap; sha256sum swap/seen.journal-*)" = "$before" ] || wrong "the copy has changed: $(ls swap)"
  run "$seen" fresh swap alice items; expect_code 0; expect_out $'last\nnew'
  run "$seen" mark -q swap alice new; expect_code 0
  run "$seen" fresh swap alice items; expect_code 0; expect_out last
  run "$seen" fresh broken alice items; expect_code 0
  if [ $acks = 1 ]; then expect_out $'last\nnew'; else expect_out new; fi
  run "$seen" mark -q broken alice last new; expect_code 0
  rm -r swapping swap broken
done

# A signal leaves a copy that is complete, or nothing.
awk 'BEGIN { for (i = 0; i < 100000; i++) print "user" i "\titem" }' | "$seen" mark -q --sync none large
broken=0
for signal in INT TERM HUP INT TERM HUP; do
  # A shell lets what it starts in the background ignore SIGINT.
  setsid bash -m -c '"$0" backup -q large stopped & echo $! >pid; wait $!; echo $? >ended' "$seen" 2>/dev/null &
  until [ -s pid ] && { [ -e stopped.seen-new ] || [ -e ended ]; }; do :; done
  kill -$signal "$(cat pid)" 2>/dev/null
  wait $!
  expect_no_file stopped.seen-new
  if [ -e stopped ]; then
    run "$seen" info --json stopped; expect_code 0; expect_json users 100000
  else
    broken=$((broken + 1))
    expect; [ "$(cat ended)" -eq $((128 + $(kill -l $signal))) ] || wrong "the end by $signal"
  fi
  rm -rf stopped pid ended
done
tried $broken backups that a signal broke off

for verb in forget sweep backup; do run "$seen" $verb --help; expect_code 0; done
finish
