#!/usr/bin/env bash
# test_wait.sh - --wait: verbs that change a store or a file wait for each other.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

# ---- Twenty at once ---------------------------------------------------------
# --wait 5m: how fast a busy machine is does not matter here.

many=20
# at_once NAME COMMAND...: many of them, "@" stands for their number; all succeed.
at_once() {
  local name=$1 pids=() i
  shift
  for ((i = 0; i < many; i++)); do
    "${@//@/$i}" >"$name.out.$i" 2>"$name.err.$i" &
    pids[i]=$!
  done
  for ((i = 0; i < many; i++)); do
    wait "${pids[i]}"
    code=$? last="${*//@/$i}" out=$(head -c 300 "$name.out.$i") err=$(cat "$name.err.$i")
    expect_code 0
  done
}

# The store does not exist either: one of them makes it.
seq 1 500 >candidates
at_once take "$seen" take -q --wait 5m feed alice -n 5 candidates
expect; [ "$(cat take.out.* | wc -l)" -eq 100 ] || wrong "expected 5 lines for each"
expect; [ "$(cat take.out.* | sort | uniq -d | wc -l)" -eq 0 ] || wrong "two of them got the same line"
run "$seen" fresh feed alice candidates; expect; [ "$(wc -l <.out)" -ge 380 ] || wrong "expected 400 fresh lines, or nearly"

at_once mark "$seen" mark -q --wait 5m feed bob item-@
for ((i = 0; i < many; i++)); do echo "item-$i"; done >items
run "$seen" fresh feed bob items; expect_out ''
at_once forget "$seen" forget -q --wait 5m feed bob item-@
run "$seen" fresh feed bob items; expect; [ "$(wc -l <.out)" -eq $many ] || wrong "not forgotten"

for ((i = 0; i < many; i++)); do echo "key-$i" >"key.$i"; done
cat key.* >all
for kind in blocked cuckoo set; do # changed in place; replaced by a new file; growing
  at_once add "$seen" add -q --wait 5m --kind $kind -n 1000 -p 1e-6 $kind.seen key.@
  run "$seen" check -qv $kind.seen all; expect_code 1
  expect_no_file $kind.seen.seen-new
done
at_once remove "$seen" remove -q --wait 5m cuckoo.seen key.@
run "$seen" check -c cuckoo.seen all; expect_out 0
at_once uniq "$seen" uniq -q --wait 5m --state state all
expect; [ "$(cat uniq.out.* | sort)" = "$(sort all)" ] || wrong "expected every line once"

# ---- One that does not end --------------------------------------------------

mkfifo slow
"$seen" mark -q --ack feed <slow >acks &
pid=$!
exec 3>slow
printf 'busy\tone\n' >&3
wait_for test -s acks
for verb in 'mark feed u i' 'take feed u -n 1 candidates' 'forget feed u' 'sweep feed'; do
  # shellcheck disable=SC2086
  run "$seen" $verb --wait 0; expect_failure "feed: another program is changing it: try again when it has ended, or wait"
  # shellcheck disable=SC2086
  run "$seen" $verb --wait 20ms; expect_failure "feed: another program is changing it, and still was after 20ms"
done
run "$seen" mark feed u i --wait 1; expect_failure "--wait 1: expected 0, or a time such as 500ms"
run "$seen" mark feed u i --wait -1s; expect_failure "--wait -1s: expected 0, or a time"
# It is waited for, by default, too: the other one ends meanwhile.
"$seen" mark feed u i >mark.out 2>mark.err 3>&- &
waiting=$!
exec 3>&-
wait $pid
wait $waiting; code=$? last='seen mark feed u i' err=$(cat mark.err); expect_code 0
expect_err "feed: 1 mark, 1 of them new"

# ---- Where there is nothing to wait for --------------------------------------

run "$seen" mark --wait 1s redis://127.0.0.1:1 u i; expect_failure "patience= applies there: leave out --wait"
run "$seen" uniq --wait 1s items; expect_failure "--wait requires --state"
run "$seen" take feed u -n 1 --also feed items; expect_failure "--also feed: is STORE itself"
run "$seen" take feed u -n 1 --also lmdb:./feed items; expect_failure "--also lmdb:./feed: is STORE itself"
finish
