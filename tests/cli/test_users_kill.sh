#!/usr/bin/env bash
# test_users_kill.sh - kill -9 of who changes a store of users: nothing that was
# acknowledged is lost, nothing is shown twice.
#
#   test_users_kill.sh SEEN [ROUNDS]    50 rounds by default
#
# `seen mark --ack` prints how many events are on disk; whatever number could be
# read when it died, so many events must be there. `seen take` prints lines; what
# came out whole must never come out again. Readers look on all the time, and
# copies are made meanwhile.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
rounds=${2:-50}
RANDOM=${SEEN_TEST_SEED:-4711}
echo "seed ${SEEN_TEST_SEED:-4711}"

# A moment between 0 and 120 milliseconds.
moment() { sleep "0.$(printf %03d $((RANDOM % 120)))"; }
# whole FILE: its lines that have an end; none, if it was never begun.
whole() { [ ! -e "$1" ] || head -n "$(wc -l <"$1")" "$1"; }

acknowledged=0 recovered=0 copied=0
"$seen" mark -q marks </dev/null
: >promised
for round in $(seq 1 "$rounds"); do
  awk -v r="$round" 'BEGIN { srand(r); for (i = 0; i < 200000; i++)
    printf "user %d\tround %d event %d\n", int(rand() * rand() * 3000), r, i }' >events
  begin ack
  "$seen" mark -q --ack --batch $((1 + RANDOM % 3 * 200)) marks <events >ack 2>/dev/null &
  pid=$!
  moment
  run bash -c "echo x | '$seen' fresh --tail marks 'user 1'"; expect_code 0
  if [ $((round % 10)) -eq 0 ]; then
    # In a copy is all that had been acknowledged when it was begun: in this round
    # and, as far as it was promised, in the one before.
    wait_for test -s ack
    n=$(whole ack | tail -n 1)
    head -n "${n:-0}" events | cat promised - | sort -s -t$'\t' -k1,1 >owed
    run "$seen" backup -q marks "copy$round"; expect_code 0
    run bash -c "'$seen' fresh 'copy$round' <owed"; expect_code 0
    expect; [ -z "$out" ] || wrong "round $round: acknowledged, and not in the copy"
    run bash -c "echo x | '$seen' fresh 'copy$round' u"; expect_out x
    copied=$((copied + $(wc -l <owed)))
    rm -rf "copy$round"
  fi
  kill -KILL $pid 2>/dev/null; wait $pid 2>/dev/null
  n=$(whole ack | tail -n 1)
  n=${n:-0}
  acknowledged=$((acknowledged + n))
  head -n "$n" events | sort -s -t$'\t' -k1,1 >promised
  # A reader finds them all, in the journal if need be, asked for it or not ...
  for tail in '' --tail; do
    run bash -c "'$seen' fresh $tail marks <promised"; expect_code 0
    expect; [ -z "$out" ] || wrong "round $round: acknowledged and lost, says a reader"
  done
  # ... and so does whoever comes after the next writer.
  if [ $((round % 2)) -eq 0 ]; then
    run "$seen" mark marks u "round $round"; expect_code 0
    [[ $err == *recovered* ]] && recovered=$((recovered + 1))
    run bash -c "'$seen' fresh marks <promised"; expect_code 0
    expect; [ -z "$out" ] || wrong "round $round: acknowledged and lost, says a writer"
  fi
done
expect; [ "$acknowledged" -gt 0 ] && [ "$recovered" -gt 0 ] || wrong "no round was interrupted on the way"
expect; [ "$rounds" -lt 10 ] || [ "$copied" -gt 0 ] || wrong "copies were asked for nothing"
run "$seen" sweep -q marks; expect_code 0
run "$seen" info marks; expect_code 0

# Everybody is offered the same 30 items again and again.
for u in $(seq 2000); do for i in $(seq 30); do printf 'user %s\titem %s\n' "$u" "$i"; done; done >candidates
: >shown
kills=$((rounds / 5 + 1))
for round in $(seq 1 $kills); do
  begin printed
  "$seen" take -q -n 1 takes <candidates >printed 2>/dev/null &
  pid=$!
  moment
  kill -KILL $pid 2>/dev/null; wait $pid 2>/dev/null
  whole printed >>shown
done
"$seen" take -q -n 30 takes <candidates >>shown
expect; [ -z "$(sort shown | uniq -d)" ] || wrong "an item was shown twice"
# A kill takes what was marked and not printed yet: one item of each user at most.
# (And 60 of the 60,000 may be withheld, at the rate of the policy.)
n=$(sort -u shown | wc -l)
expect; [ "$n" -gt $((60000 - kills * 2000 - 200)) ] || wrong "only $n were shown"
run bash -c "'$seen' fresh takes <candidates"; expect_out ''

echo "$acknowledged events acknowledged, $recovered times recovered"
tried "$rounds" kills
finish
