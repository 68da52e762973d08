#!/usr/bin/env bash
# test_server_conf.sh - seen server: what was set is there after a restart, by
# SEEN.POLICY, by CONFIG REWRITE and by its options; passwords and secrets are shown to
# nobody.
# shellcheck source=tests/cli/server.sh
source "$(dirname "$0")/server.sh"

free_ports 1
ask=(redis-cli -p "$port")
conf=data/$port/server.conf
policy() { "${ask[@]}" SEEN.POLICY default; }
old=$(($(date +%s%3N) - 10 * 86400000)) # ten days ago, in milliseconds

# ---- SEEN.POLICY is kept ------------------------------------------------------

up --dir data
run "${ask[@]}" SEEN.POLICY default ttl=30d; expect_out OK
run "${ask[@]}" SEEN.POLICY feed items=20; expect_out OK
run "${ask[@]}" SEEN.MARK seen:alice AT "$old" a; expect_out 1
down; expect_code 0
up --dir data
run "${ask[@]}" SEEN.CHECK seen:alice a b; expect_out $'1\n0'
run policy; expect_out "items=1000,generations=5,fpp=0.001,ttl=2592000000ms"
run "${ask[@]}" SEEN.POLICY feed; expect_out "items=20,generations=5,fpp=0.001,ttl=432000000ms"

# ---- CONFIG REWRITE has a file, again and again -------------------------------

run stat -c %a "$conf"; expect_out 600
for size in 100mb 200mb 300mb; do
  run "${ask[@]}" CONFIG SET maxmemory "$size" requirepass "word $size" appendfsync always; expect_out OK
  ask=(env "REDISCLI_AUTH=word $size" redis-cli -p "$port")
  run "${ask[@]}" CONFIG REWRITE; expect_out OK
  run stat -c %a "$conf"; expect_out 600
  down; expect_code 0
  up --dir data
  run "${ask[@]}" CONFIG GET maxmemory; expect_out $'maxmemory\n'$((${size%mb} << 20))
  run "${ask[@]}" CONFIG GET appendfsync; expect_out $'appendfsync\nalways'
  expect; grep -q 'on disk before' up.out || wrong "what is kept is said"
  run redis-cli -p "$port" GET x; expect_out "NOAUTH Authentication required."
  run "${ask[@]}" SEEN.CHECK seen:alice a; expect_out 1
done
run grep -c '^loadmodule' "$conf"; expect_out 1
run grep -c '^# seen server writes' "$conf"; expect_out 1
expect; ! grep -r "word 300mb" up.out up.err "data/$port/log" || wrong "the password is shown"
run "${ask[@]}" CONFIG SET requirepass "" appendfsync everysec; expect_out OK
ask=(redis-cli -p "$port")
run "${ask[@]}" CONFIG REWRITE; expect_out OK
down

# ---- --policy -------------------------------------------------------------------

# What SEEN.POLICY has set counts more, and that is said.
up --dir data --policy ttl=20d
expect; grep -q 'SEEN.POLICY has set the default to items=1000,generations=5,fpp=0.001,ttl=2592000000ms' up.err || wrong "who wins"
run "${ask[@]}" SEEN.POLICY default RESET; expect_out OK
run policy; expect_out "items=1000,generations=5,fpp=0.001,ttl=1728000000ms"
down
up --dir data
run policy; expect_out "items=1000,generations=5,fpp=0.001,ttl=1728000000ms"
down
up --dir data --policy items=2k,generations=3,fpp=0.5%,ttl=1.5d
run policy; expect_out "items=2000,generations=3,fpp=0.0050000000000000001,ttl=129600000ms"
run cat up.err; expect_out ""
down

# ---- --config -------------------------------------------------------------------

printf 'maxmemory 50mb\nrequirepass "pass word"\n' >own.conf; chmod 644 own.conf
up --dir data --config own.conf
ask=(env REDISCLI_AUTH="pass word" redis-cli -p "$port")
run "${ask[@]}" CONFIG GET maxmemory; expect_out $'maxmemory\n52428800'
run "${ask[@]}" CONFIG REWRITE; expect_out OK
expect; grep -q 'own.conf: has a password that other users can read' up.err || wrong "a password that others can read"
expect; ! grep "pass word" up.out up.err || wrong "the password is shown"
down; expect_code 0
chmod 600 own.conf
sed -i s/50mb/60mb/ own.conf # it counts more than what was rewritten, also unnamed
up --dir data --config own.conf # named again, it is there once
down
up --dir data
run "${ask[@]}" CONFIG GET maxmemory; expect_out $'maxmemory\n62914560'
run grep -c '^include' "$conf"; expect_out 1
run cat up.err; expect_out ""
down
for line in "port 1" "  Bind 0.0.0.0" "daemonize yes" "dir /" "seen.policy ttl=1d"; do
  printf '# fine\n%s\n' "$line" >bad.conf
  run timeout 60 "$seen" server --port "$port" --dir other --config bad.conf; expect_failure "--config bad.conf: line 2: "
done
run timeout 60 "$seen" server --port "$port" --dir other --config nowhere; expect_failure "--config nowhere: No such file"
run timeout 60 "$seen" server --port "$port" --dir other --config .; expect_failure "--config .: "
run timeout 60 "$seen" server --port "$port" --cluster 3 --dir other --config own.conf; expect_failure "requirepass"
expect_no_file other

# What a server says that does not start, which it prints before it has a log.
for line in "maxmemory much" "nonsense 1" "appendonly maybe" 'save "1' "loadmodule /nowhere.so" \
  "include /nowhere.conf"; do
  printf '# fine\n%s\n' "$line" >bad.conf
  run "$seen" server --port "$port" --dir never --config bad.conf
  expect_failure "the server at port $port ended at once: "
  expect; [[ $err == *"${line#* }"* ]] || wrong "the reason: $line"
done
up --dir gone --config own.conf
down
mv own.conf elsewhere.conf
run "$seen" server --port "$port" --dir gone; expect_failure "can't open config file '$PWD/own.conf': No such file"
up --dir gone --config elsewhere.conf # and again with it
down
mv elsewhere.conf own.conf
for line in 'requirepass "the word" more' 'requirepas "the word"' 'user ann "the word'; do
  printf '%s\n' "$line" >bad.conf; chmod 600 bad.conf
  run "$seen" server --port "$port" --dir never --config bad.conf; expect_failure "at line 1"
  expect; [[ $err != *"the word"* && $err == *"${line%% *}"* ]] || wrong "the password is shown"
done
run stat -c %a "never/$port/log"; expect_out 600

# ---- --secret-file ----------------------------------------------------------------

printf '0123456789abcdef0123456789abcdef\n' >key; chmod 600 key
ask=(redis-cli -p "$port")
up --dir keyed --secret-file key
run "${ask[@]}" SEEN.MARK seen:bob a; expect_out 1
expect_no_file keyed/secret
expect; ! grep -r "$(cat key)" up.out up.err keyed || wrong "the secret is shown"
down
run timeout 60 "$seen" server --port "$port" --dir keyed; expect_failure "--secret-file"
expect_no_file keyed/secret
up --dir keyed --secret-file key
run "${ask[@]}" SEEN.CHECK seen:bob a b; expect_out $'1\n0'
down
run timeout 60 "$seen" server --port "$port" --dir data --secret-file key; expect_failure "data/secret is another secret"
run timeout 60 "$seen" server --port "$port" --dir other --secret-file nowhere; expect_failure "nowhere"
cp key keyed/secret
up --dir keyed
run "${ask[@]}" SEEN.CHECK seen:bob a b; expect_out $'1\n0'
down

# ---- --bind, and names that need quotes ----------------------------------------

up --dir $'a "b\\ c' --bind 127.0.0.2,127.0.0.1
run redis-cli -h 127.0.0.2 -p "$port" SEEN.MARK seen:x a; expect_out 1
run redis-cli -p "$port" SEEN.CHECK seen:x a; expect_out 1
expect; grep -q "redis-cli -h 127.0.0.2 -p $port" up.out || wrong "how to connect"
down; expect_code 0
up --dir wide --bind 0.0.0.0
run redis-cli -h 127.0.0.3 -p "$port" PING; expect_out PONG
expect; grep -q 'no requirepass' up.err || wrong "a server without a password that others could reach"
down; expect_code 0
for bind in "" here "127.0.0.1," 1.2.3 "127.0.0.1 ::1"; do
  run timeout 60 "$seen" server --port "$port" --dir other --bind "$bind"; expect_failure "--bind $bind: expected IP addresses"
done
for policy in ttl=0 items=none days=3 fpp=2; do
  run timeout 60 "$seen" server --port "$port" --dir other --policy "$policy"; expect_failure "--policy $policy"
done

# ---- Files that cannot be had ----------------------------------------------------

mkdir -p "broken/$port/server.conf"; cp key broken/secret
run timeout 60 "$seen" server --port "$port" --dir broken; expect_failure "server.conf"
mkdir -p "link/$port"; ln -s "$work/key" "link/$port/server.conf.seen-new"
up --dir link
run wc -l key; expect_out "1 key" # a stale temporary file is not written through
down

# ---- The unit for systemd ----------------------------------------------------------

sed "s,^ExecStart=[^ ]*,ExecStart=$seen," "$(dirname "$seen")/seen-server.service" >seen-server.service
options=$(sed -n 's/^#  *SEEN_SERVER_OPTIONS=--port 7000 //p' seen-server.service)
# shellcheck disable=SC2086 # words, as systemd takes them
up --dir state $options
run policy; expect_out "items=500,generations=5,fpp=0.001,ttl=2592000000ms"
down
if command -v systemd-analyze >/dev/null; then
  run systemd-analyze verify --man=no ./seen-server.service; expect_code 0; expect_silent
  run systemd-analyze security --offline=yes --threshold=20 ./seen-server.service; expect_code 0
else
  echo "skipped: systemd-analyze is not there to read the unit"
fi

finish
