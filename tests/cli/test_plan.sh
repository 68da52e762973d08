#!/usr/bin/env bash
# test_plan.sh - seen plan as users call it.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

# A member of the JSON of one kind: number KIND MEMBER arguments...
number() {
  local kind=$1 member=$2
  shift 2
  run "$seen" plan --json --kind "$kind" "$@"
  expect_code 0
  value=$(sed -n "s/^ *\"$member\": \([^,]*\),*$/\1/p" .out)
}
between() {
  expect
  awk -v x="$value" -v low="$1" -v high="$2" 'BEGIN { exit !(x >= low && x <= high) }' ||
    wrong "expected a value from $1 to $2, got $value"
}

# The table that people know by heart, and the blocked filter's promise.
number bloom bits_per_key -n 1M -p 10%; between 4.79 4.82
number bloom bits_per_key -n 1M -p 1%; between 9.585 9.60
number bloom bits_per_key -n 1M -p 0.1%; between 14.377 14.39
number bloom fpp -n 1M --bits 8M; between 0.0214 0.0217
number blocked bits_per_key -n 1M -p 1%; between 9.9 10.2
number blocked bits_per_key -n 1M -p 1/1000; between 15 15.8
number blocked items -M 1MiB -p 1%; between 820000 835000
number bloom items -M 1MiB -p 1%; between 870000 876000
number bloom hashes -n 1000 -p 0.1%; between 10 10
number bloom bits -n 1000 -p 1% --hashes 4; between 10500 11000
number bloom fpp -n 1000 --bits 10000 --hashes 3; between 0.0172 0.0178
number set bytes -n 1M; between 10000000 10100000
number window bits_per_key -n 10M -p 1%; between 17.2 17.4
number window bits_per_key --last 10M -p 1%; between 17.2 17.4
number window bits_per_key --window 30d -n 10M -p 1%; between 17.2 17.4
number window bits_per_key --window 30d --last 10M -p 1%; between 31 31.2
number window window_ms --window 1.5h -n 10 -p 1%; between 5400000 5400000
number window window_ms --window 500ms -n 10 -p 1%; between 500 500
number window window_ms --window 2w -n 10 -p 1%; between 1209600000 1209600000
number window generations --last 1000 -p 1% --generations 8; between 8 8
number window fpp_at_4x --last 1M -p 1%; between 0.0099 0.01
number bitmap bytes --bits 1M; between 125000 126000
number bitmap fpp_at_4x --bits 1M; between 0 0
number scalable bits_per_key -n 1M -p 1%; between 10.5 11
number scalable fpp_at_4x -n 1M -p 1%; between 0.001 0.01
number blocked fpp_at_2x -n 1M -p 0.1%; between 0.02 0.05

run "$seen" plan -n 1e9 -p 0.001
expect_code 0; expect_silent
for text in bloom blocked set "1,000,000,000 keys at 0.1%" "rate at 1x / 2x / 4x" "14.38" "15.72" "planned"; do
  expect; [[ $out == *"$text"* ]] || wrong "expected the table to say: $text"
done
expect; [[ $out != *bitmap* ]] || wrong "expected no bitmap: its size is no number of keys"
run "$seen" plan --kind bitmap --bits 1e6
expect_code 0; expect_silent
for text in "integers below 1,000,000, exactly" "bitmap"; do
  expect; [[ $out == *"$text"* ]] || wrong "expected the table to say: $text"
done
run "$seen" plan --last 10M -p 1%
expect_code 0; expect_silent
for text in "the last 10,000,000 keys at 1%" window 17.28 "planned"; do
  expect; [[ $out == *"$text"* ]] || wrong "expected the table to say: $text"
done
expect; [[ $out != *blocked* ]] || wrong "expected no other kind: they forget nothing"
run "$seen" plan -n 10M -p 1% --json
expect; [[ $out == '{'*'}' ]] || wrong "expected one JSON object"

# Mistakes.
run "$seen" plan; expect_failure "-n: expected at least 1 key, and a rate or bits"
run "$seen" plan -n 1M; expect_failure "-p: expected a rate above 0 and below 1, or bits"
run "$seen" plan -p 1%; expect_failure "-n: expected at least 1 key, or bits, beside the rate"
run "$seen" plan -n 0 -p 1%; expect_failure "at least 1"
run "$seen" plan -n 9223372036854775808 -p 1%; expect_failure "32 TiB"
for bad in 0 1 nan inf 1e-400 10%x -1; do
  run "$seen" plan -n 1M "-p$bad"; expect_failure "expected a rate"
done
run "$seen" plan -n 1M -p 1e-300; expect_failure "128-bit hash"
run "$seen" plan -n 1M -p 1% --bits 1000; expect_failure "too few"
run "$seen" plan -n 1M -p 1% --kind wrong; expect_failure "expected a kind: bloom, blocked, cuckoo, scalable, window, set, bitmap, sorted, ribbon"
run "$seen" plan -n 1M -p 1% --kind fuse; expect_failure "--kind fuse: expected ribbon, the kind that has replaced it"
run "$seen" plan -n 1M -p 1% --kind blocked --hashes 5; expect_failure "--hashes 5: expected 1, 2, 4 or a multiple of 8"
for bad in 5 0s 1.5 m 5y 5dd -1d 1e30d 0.0001ms; do
  run "$seen" plan -n 1M -p 1% "--window=$bad"; expect_failure "--window $bad: expected"
done
run "$seen" plan --window 5d -p 1%; expect_failure "-n: expected at least 1, the keys that come within"
run "$seen" plan --kind window -p 1%; expect_failure "--last: expected at least 1, or a time"
run "$seen" plan --last 5 -p 1% --generations 64; expect_failure "--generations 64: expected 2 to 63"
run "$seen" plan --last 5 -p 1% --window 5d --generations 32; expect_failure "--generations 32: expected 2 to 31"
run "$seen" plan --last 5 -p 1% --kind bloom; expect_failure "not for --kind bloom"
run "$seen" plan --last 5; expect_failure "-p: expected a rate above 0 and below 1"
run "$seen" plan --kind bitmap; expect_failure "--bits: expected at least 1, the bound"
run "$seen" plan --kind bitmap --bits 1000 -n 10; expect_failure "-n 10: not for a bitmap, whose size is the bound of its integers"
run "$seen" plan --kind bitmap --bits 1000 -p 1%; expect_failure "-p 0.01: a bitmap is exact"
run "$seen" plan -n 1M -M 1MB --bits 5; expect_failure "give one"
run "$seen" plan -n 1M --bits 9M --kind scalable; expect_failure "-p: expected a rate above 0 and below 1"
run "$seen" plan -M 100T -p 1%; expect_failure "-M: expected at most 2^48"
number blocked fpp_at_4x -n 9223372036854775808 --bits 1e9; between 1 1
run "$seen" plan 1M; expect_failure "options only"
run bash -c "'$seen' plan -n 1M -p 1% >/dev/full"; expect_code 2; expect_err "No space left"

# The program itself.
for version in --version -V version; do
  run "$seen" "$version"; expect_code 0; expect; [[ $out == "seen "[0-9]* ]] || wrong version
done
run "$seen" --help; expect_code 0; expect; [[ $out == *uniq*plan* ]] || wrong help
run "$seen"; expect_code 2
run "$seen" nonsense; expect_failure "nonsense: no such verb"
for verb in uniq plan; do
  run "$seen" $verb --help
  expect_code 0; expect_silent; expect; [[ $out == *examples:* ]] || wrong "help has examples"
done

# ---- Pictures --------------------------------------------------------------

run "$seen" plan -n 1e6 -p 0.1%; plain=$out
run "$seen" plan -n 1e6 -p 0.1% --plot plan.svg; expect_code 0; expect_silent; expect_out "$plain"
well_formed() { python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$1"; }
run well_formed plan.svg; expect_code 0
# Every kind, the design point and what is beyond it, for light pages and dark ones.
for text in bloom blocked cuckoo ribbon scalable set 'planned: 1M keys at 0.1%' 'more than planned' \
  'prefers-color-scheme: dark' 'least possible'; do
  expect; grep -qF "$text" plan.svg || wrong "plan.svg does not say $text"
done
run bash -c "'$seen' plan -n 1e6 -p 0.1% --plot - | cmp - plan.svg"; expect_code 0
expect; [ "$(grep -c NaN plan.svg)" -eq 0 ] && [ "$(grep -c 'nan\|inf' plan.svg)" -eq 0 ] || wrong "no number at all"
for arguments in '-n 1 -p 50%' '-n 1e15 -p 1e-9' '-n 1000 -M 4k' '--dialect gozero -n 1e6' \
  '--last 1M -p 1%' '--kind set -n 5' '--kind scalable -n 1e6 -p 1e-6' '-n 9e18 --bits 8e18'; do
  # shellcheck disable=SC2086 # words
  run "$seen" plan $arguments --plot any.svg
  if [ "$code" -eq 0 ]; then
    run well_formed any.svg; expect_code 0
    expect; grep -q 'nan\|inf' any.svg && wrong "a number that is none: $arguments"
  else
    expect_failure ''
  fi
done
run "$seen" plan --kind bitmap --bits 1000 --plot any.svg; expect_failure "no rate to draw"
run "$seen" plan -n 1e6 -p 1% --plot /nowhere/plan.svg; expect_code 2; expect_err "/nowhere/plan.svg"
expect_no_file plan.svg.seen-new

# ---- Fleets ----------------------------------------------------------------

run "$seen" plan --fleet users=100M,items=300,candidates=500,qps=50k; expect_code 0; expect_silent
for text in '78.9 GB' '100M x 789' '3.65 cores' '1.35 cores' '18 in all' 'script/bench module'; do
  expect; [[ $out == *"$text"* ]] || wrong "expected $text"
done
# The sizes that were measured come out as they were.
for pair in 10:185 100:390 1000:2186 5000:10370 9999:10370; do
  run "$seen" plan --fleet "users=1M,items=${pair%:*}" --json; expect_code 0
  expect_json bytes_per_user "${pair#*:}"
  expect_json bytes "${pair#*:}000000"
done
run "$seen" plan --fleet users=1e6,items=100,candidates=200,qps=32k --json; expect_json cores 1
run "$seen" plan --fleet users=1e9,items=1000,memory=64GB,replicas=2 --json
expect_json nodes_for_memory 57; expect_json primaries 57; expect_json nodes 171
run "$seen" plan --fleet users=10,items=10,replicas=0 --json; expect_json nodes 1
run "$seen" plan --fleet users=10,items=5 -n 5; expect_failure "it goes with --json alone"
run "$seen" plan --fleet users=10,items=5 --plot x.svg; expect_failure "it goes with --json alone"
run "$seen" plan --fleet users=10; expect_failure "expected at least users="
run "$seen" plan --fleet ''; expect_failure "expected at least users="
run "$seen" plan --fleet users=10,itmes=5; expect_failure "--fleet itmes=5: expected users="
run "$seen" plan --fleet users=10x,items=5; expect_failure "--fleet users=10x: expected"
run "$seen" plan --fleet users,items=5; expect_failure "--fleet users: expected"
run "$seen" plan --fleet users=1,items=1,,; expect_failure "expected users="

# ---- Options that would say nothing ------------------------------------------

for option in '-n 5' '-p 1%' '--bits 9' '--hashes 7' '-M 1M' '--kind bloom' '--last 10' '--window 5d' '--generations 5' '--dialect gozero' '--bits-per-key 10' '--key-type i32' '--plot x'; do
  # shellcheck disable=SC2086 # words
  run "$seen" plan --fleet users=1M,items=300 $option; expect_failure "--fleet plans servers, not a filter: it goes with --json alone"
done
for option in '--last 10' '--window 5d' '--generations 5'; do
  # shellcheck disable=SC2086
  run "$seen" plan --dialect gozero -n 9 $option; expect_failure "are for windows, not for --dialect gozero"
done
# JSON speaks of options, too.
run "$seen" plan -n 1e6 -p 0.1% --hashes 3 --json; expect_code 0; expect; ! grep -qE '"problem": ".*\b(fpp|items|limit)\b' .out || wrong "words of the library"
expect; grep -q '"problem": ".*-' .out || wrong "no problem to look at"
run "$seen" plan -q -n 1e6 -p 0.1%; expect_code 0; expect_silent

finish
