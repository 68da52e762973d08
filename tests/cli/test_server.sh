#!/usr/bin/env bash
# test_server.sh - seen server: a server and a cluster with the module, which
# keep their data and stop when they are told to.
# shellcheck source=tests/cli/server.sh
source "$(dirname "$0")/server.sh"

free_ports 1
up --dir data
ask=(redis-cli -p "$port")
run grep -c "127.0.0.1:$port" up.out; expect_out 2
expect_file data/secret
run stat -c %a data/secret; expect_out 600
run "${ask[@]}" BF.ADD filter item; expect_out 1
run "${ask[@]}" SEEN.TAKE u:user COUNT 2 a b c; expect_out $'a\nb'
run "${ask[@]}" CONFIG GET appendfsync; expect_out $'appendfsync\neverysec'
run bash -c "redis-cli -p $port INFO seen | grep -c seen_keyed:yes"; expect_out 1

# Through our own client.
printf '%s\n' a b c d e >posts
run "$seen" take "redis://127.0.0.1:$port?prefix=u:" user -n 2 posts; expect_code 0; expect_out $'c\nd'
run "$seen" fresh "redis://127.0.0.1:$port?prefix=u:" user posts; expect_code 0; expect_out e

# A field is its own bytes, also to those who ask the server without us.
seq 1 300 | sed 's/$/:count/' >counted; seq 1 300 >ids
for url in "redis://127.0.0.1:$port?key=bf" "redis+gozero://127.0.0.1:$port/gz?bits=16384" "redis+plain://127.0.0.1:$port/plain"; do
  run "$seen" add -q "$url" -n 300 -p 1% -f1 -t: counted
  [ "$code" -eq 0 ] || { run "$seen" add -q "$url" -f1 -t: counted; expect_code 0; }
  run "$seen" check -c "$url" ids; expect_out 300
  run "$seen" check -c -f1 -t: "$url" counted; expect_out 300
done
run bash -c "xargs redis-cli -p $port BF.MEXISTS bf <ids | grep -c 1"; expect_out 300

# The same ids under the same secret get the same answers, wrong ones too: here,
# in a store of our own, and packed.
seq -f %08.0f 1 3000 >shown
seq -f %08.0f 1 200000 >all
sed 's/^/golden\t/' shown | "$seen" mark -q --secret-file data/secret lmdb:store
sed 's/^/golden\t/' shown | "$seen" mark -q "redis://127.0.0.1:$port?prefix=u:"
run bash -c "'$seen' fresh lmdb:store golden all >fresh.lmdb"; expect_code 0
run bash -c "'$seen' fresh 'redis://127.0.0.1:$port?prefix=u:' golden all >fresh.redis"; expect_code 0
run cmp fresh.lmdb fresh.redis; expect_code 0
expect; [ "$(wc -l <fresh.lmdb)" -lt 197000 ] || wrong "some are wrongly withheld, the same ones"
tr -d '\n' <all | redis-cli -p "$port" -x SEEN.FRESHP u:golden 8 >bits
cat >unpack.py <<'EOF'
bits = open("bits", "rb").read()[:25000]
items = open("all").read().split()
fresh = [x for i, x in enumerate(items) if bits[i // 8] >> (7 - i % 8) & 1]
print(fresh == open("fresh.lmdb").read().split())
EOF
run python3 unpack.py; expect_out True

# A second one finds the port taken, and everything stays as it is.
run "$seen" server --port "$port" --dir other; expect_failure "port $port is in use"
expect_no_file other
down; expect_code 0

# Data and secret are there the next time.
up --dir data --always
run "${ask[@]}" BF.EXISTS filter item; expect_out 1
run "${ask[@]}" SEEN.CHECK u:user a c e; expect_out $'1\n1\n0'
run "${ask[@]}" CONFIG GET appendfsync; expect_out $'appendfsync\nalways'
expect; grep -q 'on disk before' up.out || wrong "--always says what it does"

# kill -9 of the program stops the server, too.
kill -9 "$pid"
wait "$pid" 2>/dev/null
wait_for bash -c "! redis-cli -p $port PING" || wrong "the server has lived on"
up --dir data
run "${ask[@]}" SEEN.CHECK u:user a c e; expect_out $'1\n1\n0'
read -r child _ < <(cat /proc/"$pid"/task/*/children)
kill -9 "$child"
wait "$pid"; code=$?; expect_code 2

# A cluster: slots on three primaries, each with a replica.
free_ports 6
up --dir cluster --cluster 3
run bash -c "redis-cli -p $port CLUSTER INFO | tr -d '\r' | grep -E 'state|size'"
expect_out $'cluster_state:ok\ncluster_size:3'
for i in 1 2 3 4 5 6 7 8; do
  run redis-cli -c -p "$port" SEEN.MARK "u:user$i" a b; expect_out 2
  run redis-cli -c -p "$port" BF.ADD "filter$i" a; expect_out 1
done
run "$seen" take "redis://127.0.0.1:$port?prefix=u:" user3 -n 2 posts; expect_code 0; expect_out $'c\nd'
down; expect_code 0
up --dir cluster --cluster 3 --policy ttl=30d
run redis-cli -c -p "$port" SEEN.CHECK u:user3 a d e; expect_out $'1\n1\n0'
# Each node is configured, and each primary tells its replica what is set.
redis-cli --cluster call "127.0.0.1:$port" SEEN.POLICY feed ttl=1d >/dev/null 2>&1
has_feed() { redis-cli -p "$1" SEEN.POLICY feed | grep -q 'ttl=86400000ms'; }
for i in 0 1 2 3 4 5; do
  run redis-cli -p $((port + i)) SEEN.POLICY default; expect_out "items=1000,generations=5,fpp=0.001,ttl=2592000000ms"
  expect; wait_for has_feed $((port + i)) || wrong "the node at $((port + i)) has no policy feed"
done
down; expect_code 0

# The examples of its help, at ports that are free and in this directory.
while read -r example; do
  free_ports 6
  # shellcheck disable=SC2046 # words
  up $(sed 's/^seen server//; s/--port 7000//; s,/srv/,./,' <<<"$example")
  down; expect_code 0
done < <("$seen" server --help | sed -n '/^examples:/,$ s/^  \([^ ]\)/\1/p')

# Arguments.
run "$seen" server extra; expect_failure "extra"
run "$seen" server --cluster 2; expect_failure "expected 3"
run "$seen" server --port 65536; expect_failure "--port"
run "$seen" server --port 60000 --cluster 3; expect_failure "--port"
run "$seen" server --module nowhere; expect_failure "nowhere"
run "$seen" server --server /nowhere --port "$port" --dir x; expect_code 2
run env PATH=/nowhere "$seen" server; expect_failure "redis-server"
run "$seen" server --help; expect_code 0
finish
