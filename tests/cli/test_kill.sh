#!/usr/bin/env bash
# test_kill.sh - kill -9 at any moment: nothing that was acknowledged is lost.
#
#   test_kill.sh SEEN [ROUNDS]    50 rounds by default
#
# `seen add --ack` prints how many keys are on disk; whatever number could be
# read when it died, so many keys must be there. `seen uniq --state` prints lines;
# every line that came out whole must be known. Readers look on all the time.
# (That a loss of power does no harm either is for tests/fault and the simulated
# disk: a killed process leaves the page cache behind.)
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
rounds=${2:-50}
RANDOM=${SEEN_TEST_SEED:-4711}
echo "seed ${SEEN_TEST_SEED:-4711}"

# A moment between 0 and 60 milliseconds.
moment() { sleep "0.0$((RANDOM % 6))$((RANDOM % 10))"; }

new_files() {
  rm -f blocked* cuckoo* set*
  "$seen" add -q blocked -n 10M -p 1e-6 /dev/null
  "$seen" add -q cuckoo --kind cuckoo -n 1M -p 1e-6 /dev/null
  "$seen" add -q set --kind set /dev/null
  : | tee blocked.all cuckoo.all set.all
}

# After their last round: nothing that any round was promised has gone.
check_files() {
  local f
  for f in blocked cuckoo set; do
    run "$seen" add -q $f /dev/null; expect_code 0
    run "$seen" verify $f; expect_out "$f: good"
    run "$seen" check -v $f $f.all; expect_out ''
  done
}

acknowledged=0 recovered=0
declare -A promised=([blocked]=0 [cuckoo]=0 [set]=0)
new_files
for round in $(seq 1 "$rounds"); do
  # Before the cuckoo filter is full, which would make rounds that promise nothing.
  if [ $((round % 50)) -eq 0 ]; then
    check_files
    new_files
  fi
  case $((round % 3)) in 0) f=blocked ;; 1) f=cuckoo ;; 2) f='set' ;; esac
  seq -f "round $round key %.0f" 1 20000 >keys
  batch=$((1 + RANDOM % 3 * 50))
  begin ack
  "$seen" add -q --ack --batch $batch "$f" keys >ack 2>/dev/null &
  pid=$!
  [ "${promised[$f]}" -gt 0 ] || wait_for test -s ack # one promise at least, however slow
  moment
  "$seen" check -c "$f" keys >/dev/null; [ $? -le 1 ] || wrong "a reader in between"
  kill -KILL $pid 2>/dev/null; wait $pid 2>/dev/null
  [ -e ack ] || : >ack # killed before it began
  # The last line may have been cut off.
  n=$(head -n "$(wc -l <ack)" ack | tail -n 1)
  n=${n:-0}
  acknowledged=$((acknowledged + n)) promised[$f]=$((promised[$f] + n))
  head -n "$n" keys >promised
  run "$seen" check -v "$f" promised
  expect; [ -z "$out" ] || wrong "round $round: acknowledged and lost in $f"
  cat promised >>"$f.all"
  run "$seen" verify "$f"; expect_code 0
  [[ $out == *journal* ]] && recovered=$((recovered + 1))
done
check_files
for f in blocked cuckoo set; do
  expect; [ "${promised[$f]}" -gt 0 ] || wrong "no key of $f was acknowledged"
done
expect; [ "$recovered" -gt 0 ] || wrong "no round was interrupted on the way"

for round in $(seq 1 $((rounds / 5 + 1))); do
  seq -f "line %.0f of $round" 1 1000000 >keys
  begin printed
  "$seen" uniq -q -j $((1 + round % 2)) --state state keys >printed 2>/dev/null &
  pid=$!
  moment; moment
  kill -KILL $pid 2>/dev/null; wait $pid 2>/dev/null
  [ -e state ] || continue
  head -n "$(wc -l <printed)" printed >whole
  run "$seen" uniq -q --state state whole
  expect_code 0; expect; [ -z "$out" ] || wrong "round $round: printed and not known"
done
[ -e state ] && { run "$seen" verify state; expect_code 0; }

echo "$acknowledged keys acknowledged, $recovered times recovered"
tried "$rounds" kills
finish
