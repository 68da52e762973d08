#!/usr/bin/env bash
# test_server_users.sh - stores on a server: which options count there, and that
# those which do not are mistakes.
# shellcheck source=tests/cli/server.sh
source "$(dirname "$0")/server.sh"

free_ports 1
"$seen" server -q --port "$port" --dir data >up.out 2>&1 &
pid=$!
trap 'kill $pid; wait $pid; rm -rf "$work"' EXIT
store=redis://127.0.0.1:$port
ready() { redis-cli -p "$port" SEEN.POLICY; }
wait_for ready
ask=(redis-cli -p "$port")
printf '%s\n' a b c >posts

# ---- The policy goes with every question -------------------------------------

# A server that is asked with its default of 5 days calls older marks forgotten.
policy=(--policy "items=10,ttl=30d")
ten_days_ago=$(($(date +%s%3N) - 10 * 86400000))
run "${ask[@]}" SEEN.MARK seen:alice AT "$ten_days_ago" POLICY items=10,ttl=30d a b; expect_out 2
run "$seen" fresh "$store" alice "${policy[@]}" posts; expect_code 0; expect_out c
run "$seen" info --json "$store" --user alice "${policy[@]}"; expect_code 0; expect_json items 2
run "$seen" forget "$store" alice a "${policy[@]}"; expect_code 0; expect_err "1 item of alice forgotten"
run "$seen" fresh "$store" alice "${policy[@]}" posts; expect_out $'a\nc'
run "$seen" take "$store" alice -n 1 "${policy[@]}" posts; expect_out a
for verb in "fresh $store alice" "forget $store alice a" "info $store --user alice"; do
  # shellcheck disable=SC2086 # words
  run "$seen" $verb --policy items=none; expect_failure "--policy items=none: expected"
  # shellcheck disable=SC2086
  run "$seen" $verb --policy fpp=1e-30; expect_failure "--policy fpp=1e-30: "
done
run "$seen" info "$store" "${policy[@]}"; expect_failure "--policy requires --user"

# ---- The server's business ---------------------------------------------------

for verb in "fresh $store alice" "take $store alice -n 1" "mark $store alice x" "forget $store alice" "info $store" "info $store --user alice"; do
  # shellcheck disable=SC2086
  run "$seen" $verb --at 1000; expect_failure "$store: the server's clock applies there: leave out --at"
done
for verb in "take $store alice -n 1" "mark $store alice x"; do
  # shellcheck disable=SC2086
  run "$seen" $verb --sync none; expect_failure "$store: the server's appendfsync applies there: leave out --sync"
done
for verb in "fresh $store alice" "info $store" "take mem: alice -n 1 --also $store"; do
  # shellcheck disable=SC2086
  run "$seen" $verb --tail; expect_failure "$store: a server has no journal to read: leave out --tail"
done
"$seen" mark -q feed bob a; "$seen" mark -q "$store" bob b
run "$seen" fresh feed bob --also "$store" --tail posts; expect_code 0; expect_out c
run "$seen" fresh "$store" bob --also feed --tail posts; expect_code 0; expect_out c
run "$seen" fresh feed alice --also "$store" --at 1000 posts; expect_failure "clock applies there"
run "$seen" info "$store"; expect_code 0

# ---- A filter is no store -----------------------------------------------------

filter="$store?key=f"
run "$seen" forget "$filter" --at 1000; expect_failure "$filter: is a filter; --at is for stores"
run "$seen" info "$filter" --tail; expect_failure "$filter: is a filter; --tail is for stores"

finish
