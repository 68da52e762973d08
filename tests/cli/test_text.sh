#!/usr/bin/env bash
# test_text.sh - lists from elsewhere: CR LF, byte order marks, UTF-16. No filter
# is made of them that calls clean lines absent, unless a word is said.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

printf 'one\ntwo\nthree\n' >clean
sed 's/$/\r/' clean >dos
crs="3 of 3 lines end in CR LF, as Windows writes them, and the CR is part of their keys: add --crlf to leave it out"

# ---- CR LF ------------------------------------------------------------------

# warned ARGUMENT...: it does what it always did, and says what that is, -q or not.
warned() {
  run "$seen" "$@"
  expect; [ "$code" -lt 2 ] || wrong "expected it to work"
  expect_err "warning: $crs"
}
warned uniq dos
expect; cmp -s .out dos || wrong "lines as they are"
warned build -qn 10 -o dos.seen dos
run "$seen" check dos.seen clean; expect_code 1; expect_silent
warned check -c dos.seen dos; expect_out 3
warned check -qv dos.seen dos; expect_code 1
warned add -q -n 10 added.seen dos
warned add -q -n 10 --kind cuckoo cuckoo.seen dos
warned remove -q cuckoo.seen dos
warned fresh -q mem: alice dos
warned take -q store alice -n 1 dos; expect_out $'one\r'
sed 's/^/bob\t/' dos >events; input=events warned mark -q store

# With --crlf the CR is no part of the key, and still a part of the line.
for mode in '' '-i' '-j2'; do
  # shellcheck disable=SC2086 # words
  run "$seen" uniq $mode --crlf dos clean
  expect_silent; expect; cmp -s .out dos || wrong "uniq --crlf $mode"
done
run "$seen" build -qn 10 --crlf -o dos.seen dos; expect_silent
run "$seen" check dos.seen clean; expect_out $'one\ntwo\nthree'; expect_silent
run "$seen" check --crlf dos.seen dos; expect_silent; expect; cmp -s .out dos || wrong "check --crlf"
printf 'x,one\r\n' >fields; run "$seen" check --crlf -f 2 -t , dos.seen fields; expect_out $'x,one\r'
run "$seen" add -q --crlf -n 10 added2.seen dos; expect_silent; run "$seen" check -c added2.seen clean; expect_out 3
run "$seen" remove -q --crlf dos.seen dos; expect_code 2
run "$seen" add -q --crlf -n 10 --kind cuckoo c2.seen clean; run "$seen" remove -q --crlf c2.seen dos; expect_silent
run "$seen" check -c c2.seen clean; expect_out 0
input=events run "$seen" mark -q --crlf store; expect_silent
run "$seen" fresh store bob clean; expect_out ''
run "$seen" take -q --crlf store carol -n 2 dos; expect_out $'one\r\ntwo\r'; expect_silent
run "$seen" fresh store carol clean; expect_out three

# Some of the lines; a last one without an end; a CR elsewhere.
printf 'a\r\nb\nc\rd\ne\r' >some
run "$seen" uniq -c some; expect_out 4; expect_err "2 of 4 lines end in CR LF"
printf '\r\n\r\n\n' >blank; run "$seen" uniq --crlf -c blank; expect_out 1; expect_silent
# Numbers and hex say what is wrong with them.
printf '7\r\n' >number; run "$seen" uniq --u64 number; expect_failure "number:1: 7?: ends in CR LF, as Windows writes lines: add --crlf"
run "$seen" uniq --u64 --crlf -c number; expect_out 1
printf '0aff\r\n' >hex; run "$seen" uniq --hex hex; expect_failure "add --crlf"
# Lines that end in NUL have any bytes.
printf 'a\r\0b\r\n\0' >nul; run "$seen" uniq -0 -c nul; expect_out 2; expect_silent
run "$seen" uniq -0 --crlf nul; expect_failure "leave out --crlf"
# Only where it is in the key.
printf 'a,1\r\nb,2\r\nc\r\n' >table
run "$seen" uniq -t, -f1 -c table; expect_err "warning: 1 of 3 lines ends in CR LF, as Windows writes them, and the CR is part of its key"
run "$seen" uniq -t, -f2 -c table; expect_err "warning: 3 of 3 lines end in CR LF"
head -2 table >two; run "$seen" uniq -t, -f1 -c two; expect_silent
printf 'a\r,1\nb\r,2\n' >within; run "$seen" uniq -t, -f1 -c within; expect_out 2; expect_silent # no end of a line
run "$seen" uniq -t, -f1 -c --crlf table; expect; [[ $err != *CR* ]] || wrong "a warning about nothing"
# JSON has it inside, and nothing is beside it.
run "$seen" uniq -c --json dos; expect_silent; expect; jq -e --arg w "$crs" '.warnings == [$w]' .out >.jq || wrong "warnings in JSON"
run "$seen" build -n 10 --json -o j.seen dos; expect_silent; expect; jq -e '.warnings | length == 1' .out >.jq || wrong "warnings in JSON"
for verb in 'add added.seen dos' 'check -c dos2.seen dos' 'remove c3.seen dos'; do
  "$seen" build -qn 10 -o dos2.seen clean; "$seen" add -q -n 10 --kind cuckoo c3.seen clean
  # shellcheck disable=SC2086
  run "$seen" ${verb/ / --json }; expect_silent; expect; jq -e --arg w "$crs" '.warnings == [$w]' .out >.jq || wrong "warnings in JSON"
done
input=events run "$seen" mark --json store; expect_silent; expect; jq -e '.warnings | length == 1' .out >.jq || wrong "warnings in JSON"
run "$seen" uniq -c --json clean; expect; ! grep -q warnings .out || wrong "a warning about nothing"
run bash -c "'$seen' take --json store dave -n 1 dos 2>&1 >/dev/null | jq -e '.warnings | length == 1'"; expect_code 0

# ---- Marks of UTF-8 ---------------------------------------------------------

bom=$'\xef\xbb\xbf'
(printf '%s' "$bom"; cat clean) >marked
run "$seen" uniq marked; expect_err "seen uniq: marked: began with a byte order mark, which is no part of its first line"
expect; cmp -s .out clean || wrong "the mark is no part of the line"
run "$seen" uniq -q marked; expect_silent; expect; cmp -s .out clean || wrong "nor with -q"
run "$seen" build -qn 10 -o marked.seen marked; expect_silent
run "$seen" check marked.seen clean; expect_out $'one\ntwo\nthree'
run "$seen" check marked.seen marked; expect_out $'one\ntwo\nthree'
for pack in gzip 'zstd -q' xz bzip2; do
  run bash -c "$pack <marked | '$seen' uniq -q"; [ "$code" -ne 2 ] || break # built without
  expect; cmp -s .out clean || wrong "a mark in $pack"
done
run "$seen" uniq -c marked clean marked; expect_out 3; expect_err "marked and 1 more began with a byte order mark"
input=marked run "$seen" build -qo counted.seen; run "$seen" check -c counted.seen clean; expect_out 3
printf 'bob\tone\n' >user; (printf '%s' "$bom"; cat user) >marked.user
input=marked.user run "$seen" mark -q bommed; run "$seen" fresh bommed bob clean; expect_out $'two\nthree'
# Byte by byte; parts of it; nothing else; lines that end in NUL.
drip() { local i; for ((i = 1; i <= $(stat -c %s "$1"); i++)); do tail -c +$i "$1" | head -c 1; sleep 0.01; done; }
expect; drip marked | "$seen" uniq -q | cmp -s - clean || wrong "a mark, byte by byte"
printf '%s' "$bom" >only; run "$seen" uniq only; expect_out ''
for part in '\xef' '\xef\xbb' '\xff' '\xfe' '\0\0\xfe' 'x\xef\xbb\xbf'; do
  # shellcheck disable=SC2059
  printf "$part" >part; expect; "$seen" uniq part | cmp -s - <(cat part; echo) || wrong "a part of a mark: $part"
done
printf '%sa\0a\0' "$bom" >nul; run "$seen" uniq -0 -c nul; expect_out 2; expect_silent
# In the middle it is not taken away, but not passed over either.
cat clean marked marked >joined
run "$seen" uniq -qc joined; expect_out 4; expect_err "warning: 2 of 9 lines begin with a byte order mark, from files that were put together"

# ---- UTF-16 -----------------------------------------------------------------

for code_of in UTF-16 UTF-16LE UTF-16BE UTF-32 UTF-32BE; do
  { [ "${code_of%E}" = "$code_of" ] || printf '%s' "$bom" | iconv -f UTF-8 -t "$code_of"; iconv -f UTF-8 -t "$code_of" clean; } >wide
  says="is text in ${code_of:0:6}, expected lines of bytes or UTF-8: convert it first, iconv -f ${code_of:0:6} -t UTF-8"
  run "$seen" uniq wide; expect_failure "wide: $says"
  input=wide run "$seen" uniq; expect_failure "stdin: $says"
  run bash -c "cat wide | '$seen' uniq"; expect_failure "stdin: $says"
  run bash -c "gzip <wide | '$seen' build -n 10 -o no.seen"
  [[ $err == *"does not read"* ]] || { expect_failure "stdin: $says"; expect_no_file no.seen; }
  run "$seen" build -o no.seen clean wide; expect_failure "wide: $says"; expect_no_file no.seen
  run "$seen" add -n 10 no.seen clean wide; expect_failure "wide: $says"; expect_no_file no.seen
  input=wide run "$seen" add -n 10 no.seen; expect_failure "stdin: $says"; expect_no_file no.seen
  run "$seen" check added2.seen wide; expect_failure "wide: $says"
  run "$seen" take store erin -n 1 wide; expect_failure "wide: $says"
  # What it says to do works.
  run bash -c "iconv -f ${code_of:0:6} -t UTF-8 wide | '$seen' uniq"; expect_out $'one\ntwo\nthree'
done
run "$seen" uniq -0 -c wide; expect_code 0

# ---- Archives ---------------------------------------------------------------

tar cf lines.tar clean
run "$seen" build -n 10 -o no.seen lines.tar; expect_failure "lines.tar: is a tar archive, expected lines: tar -xOf prints the files in it"; expect_no_file no.seen
run bash -c "cat lines.tar | '$seen' uniq"; expect_failure "stdin: is a tar archive"
run bash -c "gzip <lines.tar | '$seen' uniq"
[[ $err == *"does not read"* ]] || expect_failure "stdin: is a tar archive"
run bash -c "tar -xOf lines.tar | '$seen' uniq"; expect_out $'one\ntwo\nthree'

# ---- UTF-16 without a mark --------------------------------------------------

# Without a mark it is suspected; other NULs are bytes of keys.
for code_of in UTF-16LE UTF-16BE; do
  iconv -f UTF-8 -t "$code_of" clean >wide
  run "$seen" build -qn 10 -o wide.seen wide; expect_err "warning: wide: every other byte is NUL, as in UTF-16 without a byte order mark: then convert it first, iconv -f $code_of -t UTF-8"
done
printf 'a\0b\0c\0d\0\0\0\n' >nuls; run "$seen" uniq -c nuls; expect_out 1; expect_silent
head -c 100 /dev/zero >nuls; run "$seen" uniq -c nuls; expect_out 1; expect_silent
finish
