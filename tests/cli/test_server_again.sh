#!/usr/bin/env bash
# test_server_again.sh - seen server --cluster: what a start that failed has left
# does not keep the next one from success.
# shellcheck source=tests/cli/server.sh
source "$(dirname "$0")/server.sh"

free_ports 8
info() { redis-cli -p "$port" CLUSTER INFO | tr -d '\r' | grep -E '^cluster_(state|size|known_nodes)'; }
whole=$'cluster_state:ok\ncluster_known_nodes:6\ncluster_size:3'

# Without a client nothing is begun.
mkdir bin; ln -s "$(command -v redis-server || command -v valkey-server)" bin/redis-server
run env PATH="$work/bin" "$seen" server --port "$port" --dir d --cluster 3
expect_failure "neither valkey-cli nor redis-cli is in the PATH"
expect_no_file d

# A client that fails, having changed nothing: nodes have run, and are blank.
real=$(command -v redis-cli || command -v valkey-cli)
printf '#!/bin/sh\nexit 1\n' >bin/redis-cli; chmod +x bin/redis-cli
run env PATH="$work/bin" "$seen" server --port "$port" --dir d --cluster 3
expect_failure "--cluster create failed"
expect_file "d/$port/nodes.conf"
expect_file d/unfinished

# One that dies on the way: some nodes have slots, and know each other.
cat >bin/redis-cli <<SCRIPT
#!/bin/sh
$real -p $port CLUSTER ADDSLOTSRANGE 0 5000 >/dev/null
$real -p $port CLUSTER MEET 127.0.0.1 $((port + 1)) >/dev/null
while [ "\$($real -p $port CLUSTER INFO | tr -d '\r' | grep known_nodes)" != cluster_known_nodes:2 ]; do :; done
exit 1
SCRIPT
run env PATH="$work/bin:/usr/bin:/bin" "$seen" server --port "$port" --dir d --cluster 3
expect_failure "--cluster create failed"

# The next start makes it all the same, and the one after it finds it.
up --dir d --cluster 3
run info; expect_out "$whole"
expect_no_file d/unfinished
run redis-cli -c -p "$port" SEEN.MARK u:user a b; expect_out 2
down; expect_code 0
up --dir d --cluster 3
run info; expect_out "$whole"
run redis-cli -c -p "$port" SEEN.CHECK u:user a c; expect_out $'1\n0'
down; expect_code 0

# Another number is another cluster: it says so at once, and harms nothing.
run "$seen" server --port "$port" --dir d --cluster 4
expect_failure "has a cluster of 6 nodes, --cluster 4 means 8: start it as it was, or remove"
up --dir d --cluster 3
run redis-cli -c -p "$port" SEEN.CHECK u:user a c; expect_out $'1\n0'

# Unfinished, but with somebody's data in it: nothing is thrown away.
down; expect_code 0
touch d/unfinished
run "$seen" server --port "$port" --dir d --cluster 3
expect_failure "was never finished, and the node at port"
rm d/unfinished
up --dir d --cluster 3
run redis-cli -c -p "$port" SEEN.CHECK u:user a c; expect_out $'1\n0'
down; expect_code 0

finish
