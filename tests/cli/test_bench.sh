#!/usr/bin/env bash
# test_bench.sh - seen bench: figures for every kind, and rates that are what was
# asked for. How fast anything is decides nothing here.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

# Keys are the same ones every time, so are wrong answers: no luck is involved.
cat >check.py <<'EOF'
import json, sys
report = json.load(sys.stdin)
assert report["items"] == 20000 and report["key_bytes"] == int(sys.argv[1]), report
for kind in report["kinds"]:
    for speed in ("adds", "lookups", "random_reads"):
        assert kind[speed + "_per_second"] > 0, kind
    assert kind["lookups_per_second_batch"] > 0 and kind["reads_per_lookup_batch"] > 0, kind
    assert kind["bytes"] > 10000 and kind["probes"] > 0, kind
    if kind["kind"] in ("bloom", "blocked", "cuckoo", "ribbon"):
        assert 0.9 < kind["fpp_measured"] / kind["fpp"] < 1.1, kind
    assert kind["fpp_measured"] < 1.1 * report["fpp"], kind
    assert abs(kind["fpp_measured"] - kind["wrong"] / kind["probes"]) < 1e-12, kind
print(len(report["kinds"]) >= int(sys.argv[2]))
EOF
run bash -c "'$seen' bench -n 20k -p 2% --key-bytes 9 --json --plot bench.svg | python3 check.py 9 8"
expect_code 0; expect_out True; expect_silent
for kind in bloom blocked cuckoo ribbon scalable set sorted window; do
  expect; grep -q ">$kind<" bench.svg || wrong "expected bars for $kind"
done
run python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("bench.svg")'; expect_code 0
expect; grep -q 'nan\|inf' bench.svg && wrong "a number that is none"
run bash -c "'$seen' bench -n 20k -p 2% --kind blocked --keyed --key-bytes 300 --json | python3 check.py 300 1"
expect_code 0; expect_out True
run "$seen" bench -n 20k --kind window -p 1%; expect_code 0; expect_silent
expect; grep -q '^window .*%, ' "$work/.out" || wrong "expected a row"
run "$seen" bench -n 1 --kind bloom; expect_code 0
run bash -c "'$seen' bench -n 20k --kind ribbon --plot - | head -c 4"; expect_out '<svg'

run "$seen" bench extra; expect_failure "options only"
run "$seen" bench --key-bytes 7; expect_failure "expected 8 to"
run "$seen" bench --key-bytes 1G; expect_failure "expected 8 to"
run "$seen" bench --kind bitmap; expect_failure "random reads"
run "$seen" bench -n 20k --kind bloom --plot /nowhere/x.svg; expect_failure "/nowhere/x.svg"
run "$seen" bench -n 2e13 --kind bloom; expect_failure "smaller -n"
finish
