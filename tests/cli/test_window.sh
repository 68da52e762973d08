#!/usr/bin/env bash
# test_window.sh - filter files that forget.
source "$(dirname "$0")/lib.sh"

seq 1000 >keys

# ---- By count ---------------------------------------------------------------

run "$seen" build -q --last 200 -p 1e-6 -o last.seen keys; expect_code 0
run "$seen" check -c last.seen keys
expect; n=$(cat .out); [ "$n" -ge 200 ] && [ "$n" -le 250 ] || wrong "$n of the last 200"
seq 801 1000 >newest
run "$seen" check -c last.seen newest; expect_out 200
run "$seen" info last.seen; expect; grep -q 'the last 200 keys, in 4 generations' .out || wrong "info"
seq 1001 1200 >later
run "$seen" add -q --last 200 last.seen later; expect_code 0
run "$seen" check -c last.seen later; expect_out 200
# A window may hold a generation more than it promises; that is no complaint.
seq 1201 1220 >few
run "$seen" add last.seen few; expect_code 0
expect; [[ $err != *planned* ]] || wrong "a full window is as planned"
run "$seen" check -c last.seen newest
expect; [ "$(cat .out)" -le 50 ] || wrong "old keys stay"
run "$seen" add --last 300 last.seen later; expect_failure "is not a window of the last 300 keys"

run "$seen" build -q --last 200 --generations 8 -o eight.seen keys; expect_code 0
run "$seen" info eight.seen; expect; grep -q 'in 8 generations' .out || wrong "--generations"
run "$seen" add -q --last 200 eight.seen later; expect_code 0
run "$seen" add -q --last 200 --generations 8 eight.seen later; expect_code 0
run "$seen" add --last 200 --generations 4 eight.seen later; expect_failure "has 8 generations, --generations says 4"
run "$seen" build --generations 8 -o none keys; expect_failure "--generations: for windows"
run "$seen" build --last 10 --generations 5G -o none keys; expect_failure "--generations"
run "$seen" build -q --kind window -n 200 -o same.seen keys; expect_code 0
run "$seen" info same.seen; expect; grep -q 'the last 200 keys, in 4 generations' .out || wrong "-n is --last"

# ---- By time ----------------------------------------------------------------

run "$seen" build -q --window 1s -n 1000 -p 1e-6 -o time.seen keys; expect_code 0
run "$seen" info --json time.seen; expect; grep -q '"window_ms": 1000' .out || wrong "info"
sleep 2
run "$seen" check -c time.seen keys; expect_out 0
run "$seen" verify time.seen; expect_code 0
run "$seen" add --window 2s -n 1000 time.seen later; expect_failure "is not a window of --window, 2 s"
# A slow machine must not make a key too old before it is asked for.
run "$seen" add -q --window 1h -n 1000 hour.seen later; expect_code 0
run "$seen" add -q --window 1h -n 1000 hour.seen keys; expect_code 0
run "$seen" check -c hour.seen later keys; expect_out 1200
run "$seen" build --window 1s -o none - </dev/null; expect_failure "-n"
run "$seen" merge -o none time.seen time.seen; expect_code 2

# More keys than the plan within the time, or as many at once: nobody would notice but for a warning.
seq 10001 20000 >burst
crowded="keys came faster than its window was planned for, 1,000 evenly over its time: the rate has risen from"
run "$seen" build -q --window 1h -n 1000 -o crowd.seen burst; expect_err "warning: crowd.seen: $crowded"; expect_err "with a larger -n, or for bursts with --last"
run "$seen" build --window 1h -n 1000 --json -o crowd.seen burst; expect_silent; expect; jq -e '.warnings | length == 1' .out >.jq || wrong "warnings in JSON"
run "$seen" add -q --window 1h -n 1000 crowd2.seen burst; expect_err "warning: crowd2.seen: $crowded"
run "$seen" add -q crowd2.seen newest; expect_err "warning: crowd2.seen: $crowded"
run "$seen" add -q --window 1h -n 1000 crowd3.seen newest; expect_silent
run bash -c "'$seen' uniq -q --state crowd3.seen burst >/dev/null"; expect_err "warning: crowd3.seen: $crowded"
run bash -c "'$seen' uniq --json --state crowd3.seen later 2>&1 >/dev/null"; expect; jq -e '.expected_lost == null and (.warnings | length == 1)' .out >.jq || wrong "a loss that nobody knows"
run "$seen" build -q --window 1h -n 40000 -o room.seen burst; expect_silent
run "$seen" build -q --window 1h -n 10000 -o at-once.seen burst; expect_err "warning: at-once.seen: keys came faster"
run "$seen" build -q --window 1h -n 1000 --last 1000 -o both.seen burst; expect_silent

# A state forgets, too: at the clock, and by count without a complaint.
run "$seen" add -q --window 1s -n 1000 state.seen newest; expect_code 0
sleep 2
run "$seen" uniq -c --state state.seen newest; expect_out 200
run "$seen" uniq -c --state hour.seen keys; expect_out 0
run bash -c "seq 2001 7000 | '$seen' uniq --json --state last.seen 2>&1 >/dev/null"; expect; [[ $out != *'lost": null'* ]] || wrong "a loss that is known"
run bash -c "seq 7001 9000 | '$seen' uniq --state last.seen >/dev/null"; expect_code 0; expect_silent

# Windows can be piped.
run bash -c "'$seen' build -q --last 10 -o - keys | '$seen' check -c - newest"
expect; [ "$(cat .out)" -ge 10 ] || wrong "piped window"

finish
