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
(cat lines; sleep 0.3; cat lines) | "$seen" uniq -j3 >.out 2>.err &
sleep 0.2
for _ in 1 2 3 4 5; do kill -USR1 $! 2>/dev/null; sleep 0.02; done
wait $!
expect; cmp -s .out wanted || wrong "signals while working"
finish
