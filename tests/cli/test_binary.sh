#!/usr/bin/env bash
# test_binary.sh - --u64=binary: 8 bytes little-endian for each key, and nothing
# between them.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

# numbers FILE: decimal lines of stdin as binary integers; decimal FILE: and back.
numbers() { perl -ne 'print pack("Q<", $_)' >"$1"; }
decimal() { od -An -v -tu8 -w8 "$1" | tr -d ' '; }

printf '%s\n' 7 8 7 18446744073709551615 0 8 10 2570 >few.txt
numbers few.bin <few.txt # 10 is a newline, 2570 two of them

# ---- The same keys as --u64 ---------------------------------------------------

run "$seen" uniq --u64=binary few.bin; expect_code 0; expect_silent
expect; [ "$(decimal .out)" = "$(awk '!met[$0]++' few.txt)" ] || wrong "expected the first of each"
run "$seen" uniq -d --u64=binary few.bin
expect; [ "$(decimal .out)" = $'7\n8' ] || wrong "expected the repeats"
run "$seen" uniq -c --u64=binary few.bin; expect_out 6
input=few.bin; run "$seen" uniq --line-buffered --u64=binary; unset input
expect; [ "$(decimal .out | wc -l)" = 6 ] || wrong "expected 6 numbers"

run "$seen" build -qo text.seen --u64 few.txt; expect_code 0
run "$seen" build -qo binary.seen --u64=binary few.bin; expect_code 0
run "$seen" info --json binary.seen; expect_json key_form '"u64"'
printf '%s\n' 7 9 2570 >asked.txt; numbers asked.bin <asked.txt
for filter in text.seen binary.seen; do
  run "$seen" check --u64 "$filter" asked.txt; expect_code 0; expect_silent; expect_out $'7\n2570'
  run "$seen" check --u64=binary "$filter" asked.bin; expect_code 0; expect_silent; expect_out $'7\n2570'
  run "$seen" check -v --u64=binary "$filter" asked.bin; expect_out 9
  run "$seen" check -c --u64=binary "$filter" asked.bin; expect_out 2
  run "$seen" check -q --u64=binary "$filter" asked.bin; expect_code 0; expect_out ''
done
run "$seen" check --verdict --u64=binary binary.seen asked.bin; expect_out $'maybe\t7\nnever\t9\nmaybe\t2570'
run "$seen" check --json --u64=binary binary.seen asked.bin; expect_out "$("$seen" check --json --u64 binary.seen asked.txt | sed "s/\"bytes\": [0-9]*, \"seconds\": [0-9.e-]*/$(grep -o '"bytes": [0-9]*, "seconds": [0-9.e-]*' .out)/")"
run "$seen" check -c binary.seen asked.txt; expect_err "its keys are integers of 8 bytes (--u64)"

printf '9\n' | numbers more.bin
run "$seen" add -q --u64=binary binary.seen more.bin; expect_code 0
run "$seen" check --u64 binary.seen asked.txt; expect_out $'7\n9\n2570'
run "$seen" build -q --kind cuckoo -o cuckoo.seen --u64=binary few.bin; expect_code 0
run "$seen" remove -q --u64=binary cuckoo.seen asked.bin; expect_code 0
run "$seen" check --u64 cuckoo.seen <(printf '%s\n' 7 8); expect_out 8

run "$seen" uniq --state state --u64=binary few.bin; expect_code 0
run "$seen" uniq --state state --u64 asked.txt; expect_silent; expect_out 9

# A bitmap, whose message has the number in decimal.
run "$seen" build -q --kind bitmap --bits 3000 -o map --u64=binary asked.bin; expect_code 0
run "$seen" check map asked.txt; expect_out $'7\n9\n2570'
run "$seen" build -q --kind bitmap --bits 3000 -o map2 --u64=binary few.bin
expect_failure "few.bin:4: 18446744073709551615: is not below --bits"

# ---- Any bytes, any cut ---------------------------------------------------------

# Bytes that begin other files: marks of UTF-8 and UTF-16, a tar archive's NULs.
printf '\xef\xbb\xbf\n\xff\xfe\x00\x00' >marks
run "$seen" uniq --u64=binary marks; expect_code 0; expect_silent
expect; cmp -s marks .out || wrong "expected the same bytes"

seq 1000003 7 3000000 >many.txt; numbers many.bin <many.txt # several chunks
cat many.bin few.bin many.bin >twice.bin
for threads in 1 3; do
  run "$seen" uniq -j "$threads" --u64=binary twice.bin; expect_code 0
  expect; cmp -s .out <(cat many.bin; "$seen" uniq --u64=binary few.bin) || wrong "expected each once with -j $threads"
  run "$seen" build -qo many.seen -j "$threads" --u64=binary many.bin; expect_code 0
  run "$seen" check -c -v -j "$threads" --u64 many.seen many.txt; expect_out 0
done
run "$seen" build -o counted --u64=binary many.bin; expect_err ": $(wc -l <many.txt | sed ':a;s/\B[0-9]\{3\}\>/,&/;ta') integers, "
run "$seen" build --json -o counted --u64=binary many.bin; expect_json lines "$(wc -l <many.txt)"
run bash -c "(head -c 100003 many.bin; sleep 0.3; tail -c +100004 many.bin) | '$seen' uniq --u64=binary | cmp - many.bin"; expect_code 0
gzip -k many.bin; run "$seen" check -c --u64=binary many.seen many.bin.gz; expect_out "$(wc -l <many.txt)"
: >empty; run "$seen" uniq --u64=binary empty few.bin; expect_code 0
expect; [ "$(decimal .out | wc -l)" = 6 ] || wrong "expected 6 numbers"

# ---- Not a multiple of 8 ----------------------------------------------------------

printf abc | cat few.bin - >odd.bin
run "$seen" uniq --u64=binary odd.bin; expect_code 2
expect_err "odd.bin: ends with 3 bytes at offset 64: expected 8 bytes for each number (--u64=binary)"
expect; [ "$(decimal .out | wc -l)" = 6 ] || wrong "expected the 6 numbers before it"
printf a | cat many.bin - >odd_many.bin
run "$seen" build -o none --u64=binary few.bin odd_many.bin
expect_failure "odd_many.bin: ends with 1 byte at offset $(stat -c %s many.bin)"; expect_no_file none
input=odd_many.bin; run "$seen" check -c --u64=binary many.seen; unset input
expect_failure "stdin: ends with 1 byte at offset"
run "$seen" add --u64=binary binary.seen odd.bin; expect_failure "until then, 8 integers were added"
printf a >one; run "$seen" uniq --u64=binary one few.bin; expect_failure "one: ends with 1 byte at offset 0"; expect_out ''

# ---- What does not go with it -----------------------------------------------------

run "$seen" uniq --u64=octal few.bin; expect_failure "--u64=octal: expected --u64 or --u64=binary"
run "$seen" uniq --u64= few.bin; expect_failure "--u64=: expected --u64 or --u64=binary"
for option in -f1 -0 --crlf -i --hex; do
  run "$seen" uniq --u64=binary "$option" few.bin; expect_code 2; expect_out ''
done
run "$seen" uniq --u64=binary -f1 few.bin; expect_failure "reads 8 bytes for each key, not lines: leave out -f"
run "$seen" check --u64=binary --key-type i64 many.seen few.bin; expect_failure "--key-type i64 goes with neither --u64 nor -i"
run "$seen" mark --u64=binary store u 7; expect_failure "items that are arguments are decimal numbers"; expect_no_file store
run "$seen" mark --u64=binary store; expect_failure "--u64=binary is for filters"; expect_no_file store
"$seen" mark -q --u64 store u 7
for verb in fresh "take -n1"; do
  # shellcheck disable=SC2086 # take and its option are two words
  run "$seen" $verb --u64=binary store u few.bin; expect_failure "--u64=binary is for filters"
done
run "$seen" uniq --help; expect; grep -q -- '--u64\[=binary\]' .out || wrong "help says nothing of =binary"
finish
