#!/usr/bin/env bash
# test_threads.sh - seen uniq -j: first occurrence and order are those of one
# thread, whatever the threads do. Also run under the thread sanitizer.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

awk 'BEGIN { srand(11); for (i = 0; i < 400000; i++)
  print "https://example.com/" int(rand() * 150000) "/" substr("abcdefghijklmnopqrstuvwxyz", 1, rand() * 26) }' >lines
awk '!s[$0]++' lines >wanted
for threads in 1 2 3 8; do
  for mode in "" "-n 1M -p 1e-9" "-f 4 -t /"; do
    [ "$mode" = "-f 4 -t /" ] && awk -F/ '!s[$4]++' lines >wanted_fields
    # shellcheck disable=SC2086
    run "$seen" uniq -q -j $threads $mode lines
    expect_code 0
    expect
    if [ "$mode" = "-f 4 -t /" ]; then
      cmp -s .out wanted_fields || wrong "-j $threads $mode: other lines than awk"
    else
      cmp -s .out wanted || wrong "-j $threads $mode: other lines than awk"
    fi
  done
done
mkfifo gate
begin .out
cat lines gate lines | "$seen" uniq -j3 >.out 2>.err &
wait_for test -s .out # it works, and waits for more
for _ in 1 2 3 4 5; do kill -USR1 $!; sleep 0.02; done
: >gate
wait $!; code=$?; expect_code 0
expect; cmp -s .out wanted || wrong "signals while working"

# The other verbs with threads, and a state that several of them work on.
"$seen" build -q -p 1e-9 -o filter wanted
head -n 150000 lines >some
for threads in 2 5; do
  run "$seen" build -q -p 1e-9 -j $threads -o same wanted
  expect; cmp -s <(tail -c +2000 filter) <(tail -c +2000 same) || wrong "build -j $threads: other bits"
  run "$seen" check -j $threads filter some; expect; cmp -s .out some || wrong "check -j $threads"
  run "$seen" check -v -j $threads filter some; expect_code 1
  rm -f state
  run "$seen" uniq -j $threads --state state lines; expect; cmp -s .out wanted || wrong "uniq --state -j $threads"
  run "$seen" uniq -j $threads --state state lines; expect_out ''
done
begin .out
(cat lines; sleep 5) | "$seen" uniq -j3 --state stopped >.out 2>.err &
pid=$!
wait_for cmp -s .out wanted
kill -TERM $pid; wait $pid
run "$seen" uniq -j3 --state stopped lines; expect_silent; expect_out ''
finish
