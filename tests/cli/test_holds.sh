#!/usr/bin/env bash
# test_holds.sh - more marks than the policy holds: mark says so, take refuses.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

seq 1 20000 | sed 's/^/alice\t/' >events
seq 1 9000 >candidates

run bash -c "'$seen' mark feed <events"; expect_code 0
expect_err 'feed: created; 20,000 marks'
expect_err 'left before the ttl, pushed out by newer ones: items=1000,generations=5,fpp=0.001,ttl=5d holds 5,000 items of a user'
# Those that are said to be left are: nearly, since two items may look the same.
gone=$(grep -o '[0-9,]* marks left' .err | tr -dc 0-9)
items=$("$seen" info feed --user alice | awk '$1 == "items" { gsub(",", "", $2); print $2; exit }')
differ=$((20000 - gone - items))
expect; [[ $differ -ge 0 && $differ -le 50 ]] || wrong "20000 - $gone is not $items"
run bash -c "head -n 5000 events | '$seen' mark --json small --policy items=1000"; expect_json evicted 0
run bash -c "'$seen' mark --json small <events"; expect; grep -q '"evicted": [1-9]' .out || wrong "evicted"
run "$seen" mark small bob one; expect_code 0; expect; [[ $err != *pushed* ]] || wrong "nothing was pushed out"

run "$seen" take feed bob -n 6000 candidates; expect_failure '-n 6,000: items=1000,generations=5,fpp=0.001,ttl=5d holds 5,000 items of a user'
run "$seen" take feed bob -n 5001 candidates; expect_failure '-n 5,001: '
run "$seen" take new bob -n 5001 candidates; expect_failure 'the default policy holds 5,000 items of a user'; expect_no_file new
run "$seen" take mem: bob -n 5001 candidates; expect_failure 'the default policy holds 5,000'
run "$seen" take new bob -n 2501 candidates --policy items=500; expect_failure '-n 2,501: items=500,generations=5,fpp=0.001,ttl=5d holds 2,500 items of a user'; expect_no_file new
run "$seen" take new bob -n 3001 candidates --policy generations=3; expect_failure 'items=1000,generations=3,fpp=0.001,ttl=5d holds 3,000'; expect_no_file new
run "$seen" take small bob -n 11 candidates --policy items=5,generations=2; expect_failure 'items=5,generations=2'
run "$seen" fresh feed bob -n 6000 candidates; expect_code 0 # asks, and marks nothing
# What fits is taken, and not offered again.
run "$seen" take -q feed bob -n 5000 candidates; expect_code 0; cp .out taken
expect; [ "$(wc -l <taken)" -eq 5000 ] || wrong "5000 lines"
run "$seen" fresh feed bob taken; expect_out ''
# Nor if some were shown before: those leave, not the first of what is taken.
mapfile -t shown < <(seq 10001 10700)
run "$seen" mark -q feed dora "${shown[@]}"; expect_code 0
run "$seen" take -q feed dora -n 5000 candidates; expect_code 0; cp .out taken
run "$seen" fresh feed dora taken; expect_out ''
run "$seen" take -q big carl -n 6000 candidates --policy items=2000; expect_code 0; cp .out taken
run "$seen" fresh big carl taken; expect_out ''
# What a take pushes out of earlier ones is said as mark says it.
run bash -c "seq 1 5 | '$seen' take --json few eve -n 5 --policy items=5,generations=2"; expect_json evicted 0 err
run bash -c "seq 11 15 | '$seen' take few eve -n 5"; expect_silent
run bash -c "seq 21 30 | '$seen' take few eve -n 10"; expect_err 'few: 10 marks left before the ttl, pushed out by newer ones: items=5,generations=2,fpp=0.001,ttl=5d holds 10 items of a user'
run bash -c "seq 31 40 | '$seen' take -q few eve -n 10"; expect_silent
run bash -c "seq 41 50 | '$seen' take --json few eve -n 10"; expect_json evicted 10 err
run bash -c "seq 51 60 | '$seen' fresh --json few eve"; expect; ! grep -q evicted .err || wrong "fresh pushes nothing out"
finish
