#!/usr/bin/env bash
# test_keys.sh - how lines become keys: the same key whichever verb, filter or
# system is asked, and the same that cut and tr would have made.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

# ---- Fields are what cut prints ---------------------------------------------

# Fields of any number, some empty, some lines without a delimiter, some with one
# at their end.
awk 'BEGIN { srand(3); for (i = 0; i < 3000; i++) { line = ""
  for (n = int(rand() * 6); n >= 0; n--)
    line = line (rand() < 0.2 ? "" : "Field" int(rand() * 40)) (n || rand() < 0.1 ? ":" : "")
  print line } }' >table
for list in 1 2 4 2- -2 1-3 1,3 3,1 1,2,4- 1-2,4 5,2-3,2 2,9 9 -1,3,5-; do
  cut -d : -f "$list" table >picked
  "$seen" build -qn 3000 -o - picked >picked.seen
  "$seen" build -qn 3000 -f "$list" -t : -o - table >table.seen # no id: the same keys are the same bytes
  expect; cmp -s picked.seen table.seen || wrong "-f $list: other keys than those of cut"
  run "$seen" check table.seen picked; expect; cmp -s .out picked || wrong "-f $list: cut's keys are not all there"
  awk 'NR == FNR { key[FNR] = $0; next } !met[key[FNR]]++' picked table >first
  run "$seen" uniq -q -f "$list" -t : table; expect; cmp -s .out first || wrong "uniq -f $list"
  LC_ALL=C tr "[:upper:]" "[:lower:]" <picked >folded
  "$seen" build -qn 3000 -i -o - folded >picked.seen
  "$seen" build -qn 3000 -i -f "$list" -t : -o - table >table.seen
  expect; cmp -s picked.seen table.seen || wrong "-i -f $list: other keys than those of cut and tr"
done
# DELIM may be longer than cut allows.
printf 'a::b::c\nd::e\nf\n' >long
run "$seen" build -qn 10 -f 1,3 -t :: -o t.seen long
printf 'a::c\nd\nf\na\nc\na:c\n' >asked; run "$seen" check t.seen asked; expect_out $'a::c\nd\nf'

# One field is its own bytes: for every verb, in every format.
seq 1 500 | sed 's/.*/&:count/' >counted; seq 1 500 >ids
printf 'a:1\n' >one
run "$seen" build -qn 10 -f1 -t: -o t.seen one
printf 'a\na:1\n' >asked; run "$seen" check t.seen asked; expect_out a
run "$seen" add -q -n 1000 added.seen -f1 -t: counted; run "$seen" check -c added.seen ids; expect_out 500
run "$seen" check -c -f1 -t: added.seen counted; expect_out 500
run "$seen" add -q -n 1000 --kind cuckoo cuckoo.seen ids
run "$seen" remove -q -f1 -t: cuckoo.seen counted; run "$seen" check -c cuckoo.seen ids; expect_out 0
run "$seen" uniq --state state.seen -f1 -t: counted; expect; cmp -s .out counted || wrong "a state of fields"
run "$seen" uniq --state state.seen -c ids; expect_out 0
for dialect in $("$seen" dialects --json | sed -n 's/.*"name": "\(.*\)".*/\1/p') dcso-gzip; do
  size=(-n 500 -p 0.01)
  case $dialect in
  leveldb | goleveldb | rocksdb* | badger) size=(-n 500 --bits-per-key 10) ;;
  gozero) size=(--bits 16384) ;;
  parquet*) size=(-n 500 -p 0.01) ;;
  esac
  run "$seen" build -q --force --dialect "$dialect" "${size[@]}" -o plain ids
  [ "$code" -eq 0 ] || { wrong "no filter of $dialect"; continue; }
  run "$seen" build -q --force --dialect "$dialect" "${size[@]}" -f1 -t: -o fields counted; expect_code 0
  # Some formats hold a time, or a random seed.
  expect; cmp -s plain fields ||
    [ "$("$seen" check -c --dialect "$dialect" "${size[@]}" fields ids)" -eq 500 ] || wrong "$dialect: other keys with -f1"
done
"$seen" mark -q store alice 7 8
run "$seen" mark -q -f1 -t: store alice 9:count; expect_code 0
printf 'bob\t7:x\nbob\t8:y\n' >events; input=events run "$seen" mark -q -f1 -t: store
printf '7\n8\n9\n10\n' >posts
run "$seen" fresh store alice posts; expect_out 10
run "$seen" fresh store bob posts; expect_out $'9\n10'
printf '9:z\n10:z\n' >posts; run "$seen" take store bob -f1 -t: -n 1 posts; expect_out 9:z
printf '9\n10\n' >posts; run "$seen" fresh store bob posts; expect_out 10
run "$seen" forget -q store bob -f1 -t: 7:x; echo 7 >posts; run "$seen" fresh store bob posts; expect_out 7

# Lines that have none of the fields are counted: as cut, the line where there is
# no DELIM, otherwise nothing.
printf 'a\nb\nc:\n:\nx:1\n' >few
run "$seen" uniq -f 2 -t : few; expect_out $'a\nb\nc:\nx:1'; expect_err "uniq: 2 of 5 lines have no DELIM, and the line is the key, or none of the fields"
run "$seen" uniq -f 3 -t : -c few; expect_out 3; expect_err "warning: 5 of 5 lines have no DELIM"
echo a >single; run "$seen" uniq -f 2 -t : single; expect_err "warning: 1 of 1 line has no DELIM"
# Most lines: the options are wrong, and no filter is made of that without a word.
printf 'k1:7\nk2:7\nk3:7\n' >colons
for options in "-f 1" "-f 9 -t :" "-f 1,2 -t ,"; do
  # shellcheck disable=SC2086
  run "$seen" build -qn 10 $options -o odd.seen colons; expect_code 0; expect_err "warning: 3 of 3 lines have no DELIM"
  # shellcheck disable=SC2086
  run "$seen" build -n 10 --json $options -o odd.seen colons; expect; [[ $out == *'"warnings"'*"3 of 3 lines"* ]] || wrong "no warning in JSON"
done
for options in "-f 1 -t :" "-f 1-2 -t :" "-f 1- -t ,"; do
  # shellcheck disable=SC2086
  run "$seen" build -qn 10 $options -o odd.seen colons; expect_code 0; expect_silent
done

# ---- Numbers and hex in fields ----------------------------------------------

printf '00Ff:12\n-:1\n00fe:7\n' >hashes
run "$seen" build -qn 10 --hex -f1 -t: -o hex.seen hashes; expect_code 0
run "$seen" check --hex -f 2 -t : hex.seen <(printf 'x:00FF\nx:00fd\ny:-\n'); expect_out $'x:00FF\ny:-'; expect_silent
run "$seen" uniq --hex -f 1 -t : -c hashes; expect_out 3
printf '7:a\n007:b\n8:c\n' >numbers
run "$seen" uniq --u64 -f1 -t: numbers; expect_out $'7:a\n8:c'
run "$seen" uniq --hex -f 2 -t : numbers; expect_code 2; expect_err "numbers:1: 7:a: expected an even number of hex digits"
run "$seen" build -q --kind bitmap -f1 -t: -o bits numbers; expect_code 0
run "$seen" check bits <(printf '7\n9\n8\n'); expect_out $'7\n8'
# Several fields are joined first: ab and cd are abXcd, which is no hex.
run "$seen" uniq --hex -f 1,2 -t X <(echo abXcd); expect_failure "expected"
run "$seen" build -q --dialect guava --key-type utf16 -n 100 -p 0.01 -f 1,3 -t: -o utf16 <(echo 'é:x:z'); expect_code 0
run "$seen" check --dialect guava --key-type utf16 utf16 <(printf 'é:z\né:x\n'); expect_out 'é:z'
run "$seen" build -q --dialect guava --key-type i64 -n 100 -p 0.01 -f 2 -t: -o i64 <(printf 'x:-5\ny:17\n'); expect_code 0
run "$seen" check --dialect guava --key-type i64 i64 <(printf '17\n18\n-5\n'); expect_out $'17\n-5'

# ---- How keys were made travels with the filter ------------------------------

# A filter for each way, each of them asked in each way: no word where they agree,
# otherwise a warning that -q does not silence, and the answer all the same.
declare -A flags=([text]='' [lower]=-i [hex]=--hex [u64]=--u64 [utf16]='--key-type utf16' [i32]='--key-type i32')
printf '10\n20\n30\n' >lines
# shellcheck disable=SC2086 # words
for made in "${!flags[@]}"; do
  "$seen" build -qn 10 ${flags[$made]} -o "$made.seen" lines
  run "$seen" info --json "$made.seen"; expect_json key_form "\"$made\""
  for asked in "${!flags[@]}"; do
    [ "$asked" != utf16 ] || [ "$made" != i32 ] || continue
    run "$seen" check -q ${flags[$asked]} "$made.seen" lines
    if [ "$made" = "$asked" ]; then
      expect_code 0; expect_silent
      run "$seen" check ${flags[$asked]} -c "$made.seen" lines; expect_out 3; expect_silent
    else
      expect_err "seen check: warning: $made.seen: its keys are "; expect_err ", these are "
      run "$seen" check --json -c ${flags[$asked]} "$made.seen" lines; expect_json warnings '\['; expect_silent
    fi
  done
done
run "$seen" info lower.seen; expect; [[ $out == *"  key form  lines in lower case (-i)"* ]] || wrong "no key form"
run "$seen" check lower.seen lines
expect_err "warning: lower.seen: its keys are lines in lower case (-i), these are lines as they are: the same line is another key"
# i64 are the same bytes, and -f belongs to the input.
run "$seen" check -c --key-type i64 u64.seen lines; expect_out 3; expect_silent
run "$seen" check -c -f 2 -t , text.seen <(printf 'x,10\n'); expect_out 1; expect_silent

# It stays: through adding, a journal, another kind of file, a pipe and a union.
for kind in blocked cuckoo set scalable; do
  run "$seen" add -q -n 10 --kind $kind -i "kept.$kind" lines; expect_silent
  run "$seen" add -q -i "kept.$kind" lines; expect_silent
  run "$seen" add -q "kept.$kind" lines; expect_code 0; expect_err "warning: kept.$kind: its keys are lines in lower case"
  run "$seen" info --json "kept.$kind"; expect_json key_form '"lower"'
  input="kept.$kind" run "$seen" info --json -; expect_json key_form '"lower"'
done
run "$seen" remove -q kept.cuckoo lines; expect_err "warning: kept.cuckoo: its keys are"
run "$seen" remove --json -i kept.cuckoo lines; expect_silent; expect; ! grep -q warnings .out || wrong "no warning expected"
"$seen" build -qn 10 -i -o lower2.seen lines
run "$seen" merge -qo both.seen lower.seen lower2.seen; expect_code 0; expect_silent
run "$seen" info --json both.seen; expect_json key_form '"lower"'
run "$seen" merge -qo none.seen lower.seen text.seen; expect_failure "differ in how their keys were made: lines in lower case (-i) against lines as they are"
expect_no_file none.seen
# A filter that does not say: made before there were forms, or by the library. It is
# asked without a word; with one that says, the union does not, and merge says that.
cat >unsaid.py <<'EOF'
import sys
head = bytearray(sys.stdin.buffer.read())
head[144:148] = bytes(4)
crc = 0xFFFFFFFF
for byte in head[:252]:
    crc ^= byte
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
head[252:256] = (crc ^ 0xFFFFFFFF).to_bytes(4, "little")
sys.stdout.buffer.write(head)
EOF
"$seen" build -qn 10 -i -o - lines | python3 unsaid.py >unsaid.seen
run "$seen" info --json unsaid.seen; expect_code 0; expect_json key_form null
run "$seen" check -c unsaid.seen lines; expect_out 3; expect_silent
run "$seen" merge -qo union.seen lower.seen unsaid.seen; expect_code 0
expect_err "warning: unsaid.seen does not say how its keys were made, lower.seen does (lines in lower case (-i)): the union does not say it"
run "$seen" info --json union.seen; expect_json key_form null
run "$seen" merge -qo union2.seen unsaid.seen unsaid.seen; expect_code 0; expect_silent
# A state that goes on in another way.
run "$seen" uniq -i --state s.seen lines; expect_silent
run "$seen" uniq -q --state s.seen lines; expect_code 0; expect_err "warning: s.seen: its keys are lines in lower case (-i), these are lines as they are"
run "$seen" uniq -i --state s.seen lines; expect_silent; expect_out ''
# Bitmaps hold integers, however they are written; other systems have no room.
"$seen" build -q --kind bitmap -o bits lines; run "$seen" info --json bits; expect_json key_form null
run "$seen" check -c --hex bits <(echo 0a00000000000000); expect_out 1; expect_silent
"$seen" build -q --dialect dcso -n 10 -p 0.01 -i -o d lines; run "$seen" check -c --dialect dcso d lines; expect_silent
# Errors are still the last line.
run "$seen" check --json --u64 text.seen <(echo x); expect_code 2; expect_err "warning: text.seen"; expect_err "expected a decimal number"
finish
